// Small helpers that the other parts of the world share. A page can shadow the
// properties of a form by naming its fields like them, so attributes are read
// through the prototype.
const getAttribute = Element.prototype.getAttribute;
const attr = (el, name) => getAttribute.call(el, name);
const squeeze = (s) => s.replace(/\s+/g, ' ').trim();
const cut = (s, n) => (s.length > n ? s.slice(0, n) : s);
const frameTick = () => new Promise((done) => {
  // A page that draws no frames still has to go on: a timer stands in.
  const timer = setTimeout(done, 120);
  requestAnimationFrame(() => { clearTimeout(timer); done(); });
});

// parentOf climbs the tree as it is drawn: slots and shadow hosts included.
const parentOf = (node) => {
  if (node.assignedSlot) return node.assignedSlot;
  const p = node.parentNode;
  return p instanceof ShadowRoot ? p.host : p;
};
const containsDeep = (outer, node) => {
  for (let n = node; n; n = parentOf(n)) if (n === outer) return true;
  return false;
};

// childrenOf lists the nodes drawn inside an element.
const childrenOf = (el) => {
  if (el.shadowRoot) return el.shadowRoot.childNodes;
  if (el instanceof HTMLSlotElement) {
    const put = el.assignedNodes({ flatten: true });
    if (put.length) return put;
  }
  if (el.localName === 'details' && !el.open) {
    const first = el.querySelector(':scope > summary');
    return first ? [first] : [];
  }
  return el.childNodes;
};

// roots is the document and every open shadow root in it.
const roots = () => {
  const all = [document];
  for (let i = 0; i < all.length; i += 1) {
    for (const el of all[i].querySelectorAll('*')) if (el.shadowRoot) all.push(el.shadowRoot);
  }
  return all;
};

const activeDeep = () => {
  let a = document.activeElement;
  while (a && a.shadowRoot && a.shadowRoot.activeElement) a = a.shadowRoot.activeElement;
  return a;
};

// fromPoint is the innermost element that takes a pointer at a place of this viewport.
const fromPoint = (x, y) => {
  let hit = document.elementFromPoint(x, y);
  while (hit && hit.shadowRoot) {
    const inner = hit.shadowRoot.elementFromPoint(x, y);
    if (!inner || inner === hit) break;
    hit = inner;
  }
  return hit;
};

const rectOf = (el) => {
  const r = el.getBoundingClientRect();
  if (r.width > 0 && r.height > 0) return r;
  if (el.firstChild && getComputedStyle(el).display === 'contents') {
    const range = document.createRange();
    range.selectNodeContents(el);
    return range.getBoundingClientRect();
  }
  return r;
};

const isVisible = (el) => {
  if (!el.isConnected) return false;
  const r = rectOf(el);
  if (r.width <= 0 || r.height <= 0) return false;
  return getComputedStyle(el).visibility === 'visible' &&
    (el.checkVisibility ? el.checkVisibility() || getComputedStyle(el).display === 'contents' : true);
};
