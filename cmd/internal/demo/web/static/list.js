"use strict";
const list = document.getElementById("products");
const status = document.getElementById("status");
fetch("/api/products").then(r => r.json()).then(products => {
  const cards = products.map(p => {
    const card = document.getElementById("product").content.cloneNode(true);
    card.querySelector("img").src = `/static/${p.id}.svg`;
    card.querySelector("h2").textContent = p.name;
    card.querySelector("p").textContent = p.text;
    card.querySelector("input").value = p.id;
    card.querySelector(".price").textContent = p.price;
    card.querySelector("button").setAttribute("aria-label", `Add ${p.name} to basket`);
    return card;
  });
  list.replaceChildren(...cards);
  list.removeAttribute("aria-busy");
  status.textContent = `${products.length} products in stock`;
}).catch(() => { status.textContent = "The list could not be loaded. Load the page again."; });
