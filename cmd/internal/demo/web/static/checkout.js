"use strict";
const details = document.getElementById("details");
const saved = document.getElementById("saved");
const total = document.getElementById("total");
const place = document.getElementById("place");
const trouble = document.getElementById("problem");

// send posts a form and gives the answer, or throws the words of the refusal.
async function send(url, body) {
  const r = await fetch(url, {method: "POST", body});
  const said = await r.json();
  if (!r.ok) throw new Error(said.error);
  return said;
}

function ready() { place.disabled = !(place.dataset.details && place.dataset.card); }

if (details) {
  ready();
  details.addEventListener("input", () => { saved.textContent = ""; place.dataset.details = ""; ready(); });
  details.addEventListener("submit", async e => {
    e.preventDefault();
    try {
      const said = await send("/api/details", new URLSearchParams(new FormData(details)));
      total.textContent = said.total;
      place.dataset.details = "yes";
      saved.textContent = "Details saved";
      saved.className = "";
    } catch (err) { saved.textContent = err.message; saved.className = "error"; }
    ready();
  });
  addEventListener("message", e => {
    if (e.origin !== document.body.dataset.pay || typeof e.data?.last4 !== "string") return;
    place.dataset.card = e.data.last4;
    ready();
  });
  place.addEventListener("click", async () => {
    const n = details.elements.quantity.value;
    if (!confirm(`Place the order for ${n} × ${place.dataset.product}, ${total.textContent} in all?`)) return;
    place.disabled = true;
    try {
      const said = await send("/api/order", new URLSearchParams());
      location.assign(said.url);
    } catch (err) { trouble.textContent = err.message; ready(); }
  });
}
