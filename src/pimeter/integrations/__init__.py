"""pimeter with other libraries; each module is imported by name alone, and needs its library."""
