
"use strict";
// What intervals of each level do was computed by `measure`, and is on the page: the slider says which of it is shown.
(() => {
  const slider = document.getElementById("level");
  const shown = document.getElementById("shown");
  const parts = document.querySelectorAll("[data-at]");
  const show = () => {
    for (const part of parts) {
      part.hidden = part.dataset.at !== slider.value;
      if (!part.hidden && part.dataset.level) shown.textContent = part.dataset.level;
    }
    slider.setAttribute("aria-valuetext", shown.textContent);
  };
  slider.addEventListener("input", show);
  show();
})();
