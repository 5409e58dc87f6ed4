"use strict";
const card = document.getElementById("card");
const done = document.getElementById("done");
card.addEventListener("submit", async e => {
  e.preventDefault();
  const r = await fetch("/pay", {method: "POST", body: new URLSearchParams(new FormData(card))});
  const said = await r.json();
  done.className = r.ok ? "" : "error";
  if (!r.ok) { done.textContent = said.error; return; }
  done.textContent = `Card ending in ${said.last4} will be charged`;
  for (const f of card.elements) f.disabled = true;
  parent.postMessage({last4: said.last4}, document.body.dataset.shop);
});
