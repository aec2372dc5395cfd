"use strict";
// The numbers are those of the table of all thresholds: the script shows the line at the slider's stop.
(() => {
  const slider = document.getElementById("threshold");
  const lines = document.querySelectorAll("#thresholds tbody tr");
  if (!slider || !lines.length) return;
  const show = () => {
    const cells = lines[Number(slider.value)].cells;
    document.getElementById("at").textContent = cells[0].textContent;
    slider.setAttribute("aria-valuetext", cells[0].textContent);
    for (const place of document.querySelectorAll("#choice [data-column]")) place.textContent = cells[Number(place.dataset.column)].textContent;
  };
  for (const hidden of document.querySelectorAll(".still, #choice")) hidden.hidden = false;
  slider.addEventListener("input", show);
  show();
})();
