// Where to press: visible, at rest, and reached by the pointer.
const GRID = [[0.5, 0.5], [0.25, 0.5], [0.75, 0.5], [0.5, 0.25], [0.5, 0.75], [0.1, 0.5], [0.9, 0.5], [0.25, 0.25],
  [0.75, 0.25], [0.25, 0.75], [0.75, 0.75], [0.05, 0.1], [0.95, 0.1], [0.05, 0.9], [0.95, 0.9], [0.5, 0.1], [0.5, 0.9]];

// piecesOf are the parts of an element inside this viewport, the largest first.
const piecesOf = (el) => {
  let list = Array.from(el.getClientRects());
  if (!list.length) list = [rectOf(el)];
  const out = [];
  for (const r of list) {
    const x0 = Math.max(0, r.left);
    const y0 = Math.max(0, r.top);
    const x1 = Math.min(innerWidth, r.right);
    const y1 = Math.min(innerHeight, r.bottom);
    if (x1 - x0 > 0 && y1 - y0 > 0) out.push([x0, y0, x1 - x0, y1 - y0]);
  }
  return out.sort((a, b) => b[2] * b[3] - a[2] * a[3]).slice(0, 8);
};

// takes: input at hit counts as input to el. A label passes it on to its field.
const takes = (el, hit) => {
  if (containsDeep(el, hit)) return true;
  if (!el.labels) return false;
  for (const l of el.labels) if (containsDeep(l, hit)) return !hit.closest('a[href], button, input, select, textarea');
  return false;
};

// spot finds a free point: {x, y}, or what covers the element.
const spot = (el) => {
  let by = null;
  for (const [x0, y0, w, h] of piecesOf(el)) {
    for (const [fx, fy] of GRID) {
      const x = x0 + w * fx;
      const y = y0 + h * fy;
      const hit = fromPoint(x, y);
      if (hit && takes(el, hit)) return { x, y };
      if (hit && !by) by = hit;
    }
  }
  return { by };
};

// inView: the whole element is inside the viewport and inside every box that clips it.
const inView = (el) => {
  const r = rectOf(el);
  if (r.left < -0.5 || r.top < -0.5 || r.right > innerWidth + 0.5 || r.bottom > innerHeight + 0.5) return false;
  for (let n = parentOf(el); n && n.nodeType === 1 && n !== document.documentElement && n !== document.body; n = parentOf(n)) {
    const s = getComputedStyle(n);
    if (s.overflowX === 'visible' && s.overflowY === 'visible') continue;
    const c = n.getBoundingClientRect();
    if (r.left < c.left - 1 || r.top < c.top - 1 || r.right > c.right + 1 || r.bottom > c.bottom + 1) return false;
  }
  return true;
};

// movesAside: scrolling may bring the element out from under what covers it. It
// cannot where that covers all of the viewport.
const movesAside = (el, by) => {
  let stuck = false;
  for (let n = by; n && n.nodeType === 1; n = parentOf(n)) {
    const p = getComputedStyle(n).position;
    if (p !== 'fixed' && p !== 'sticky') continue;
    const r = n.getBoundingClientRect();
    if (r.width >= innerWidth * 0.95 && r.height >= innerHeight * 0.95) return false;
    stuck = true;
  }
  if (stuck) return true;
  for (let n = parentOf(el); n && n.nodeType === 1; n = parentOf(n)) {
    if (n === document.body || n === document.documentElement || containsDeep(n, by)) break;
    if (n.scrollHeight > n.clientHeight && getComputedStyle(n).overflowY !== 'visible') return true;
  }
  return false;
};

// check tells, without touching anything, whether an element can be acted on.
const check = (el, purpose) => {
  const o = { kind: kindOf(el), disabled: isDisabled(el), readonly: isReadOnly(el), secret: isSecret(el), inView: inView(el),
    tag: tagOf(el), type: el.localName === 'input' ? el.type : '', behind: isBehind(el) };
  if (el.localName === 'label' && el.control) o.disabled = o.disabled || isDisabled(el.control);
  if (el.localName === 'select') o.options = Array.from(el.options, (x) => [x.value, squeeze(x.label), x.disabled]);
  if (el.maxLength > 0) o.max = el.maxLength;
  if (purpose === 'point' && o.inView) {
    const s = spot(el);
    if ('x' in s) { o.x = s.x; o.y = s.y; } else { o.by = sketch(s.by); o.aside = !!s.by && !o.behind && movesAside(el, s.by); }
  }
  return o;
};

const REVEAL = ['nearest', 'center', 'end', 'start'];

// aim brings an element into view (only if it may scroll), waits until it rests
// over two frames and returns a free point of it.
const aim = async (h, limit, scroll) => {
  const el = held(h);
  if (!el) return { gone: true };
  if (!isVisible(el)) return { hidden: true };
  let scrolled = false;
  const size = rectOf(el);
  let s = inView(el) || size.width > innerWidth || size.height > innerHeight ? spot(el) : {};
  if (!('x' in s) && !scroll) return { far: true };
  for (const block of REVEAL) {
    if ('x' in s) break;
    el.scrollIntoView({ block, inline: block === 'nearest' ? 'nearest' : 'center', behavior: 'instant' });
    scrolled = true;
    s = spot(el);
  }
  const t0 = performance.now();
  let last = rectOf(el);
  for (let still = 0; still < 2;) {
    await frameTick();
    if (!el.isConnected) return { gone: true, scrolled };
    const r = rectOf(el);
    const same = r.left === last.left && r.top === last.top && r.width === last.width && r.height === last.height;
    still = same ? still + 1 : 0;
    last = r;
    if (!same && performance.now() - t0 > limit) return { unstable: true, scrolled };
  }
  if (!isVisible(el)) return { hidden: true, scrolled };
  s = spot(el);
  const box = [last.left, last.top, last.width, last.height];
  return 'x' in s ? { x: s.x, y: s.y, box, scrolled } : { by: sketch(s.by), box, scrolled };
};

// still asks whether a point is (still) on the element; if not, where one is.
const still = (h, x, y) => {
  const el = held(h);
  if (!el) return { gone: true };
  const hit = fromPoint(x, y);
  if (hit && takes(el, hit)) return { ok: true };
  const s = isVisible(el) ? spot(el) : {};
  return { by: sketch(hit), x: s.x, y: s.y, again: 'x' in s };
};

// ownerBox is where a frame element shows its document, in this viewport.
const ownerBox = (owner) => {
  const r = owner.getBoundingClientRect();
  const style = getComputedStyle(owner);
  const sx = owner.offsetWidth ? r.width / owner.offsetWidth : 1;
  const sy = owner.offsetHeight ? r.height / owner.offsetHeight : 1;
  return { X: r.left + (owner.clientLeft + parseFloat(style.paddingLeft)) * sx,
    Y: r.top + (owner.clientTop + parseFloat(style.paddingTop)) * sy, SX: sx, SY: sy, Shown: isVisible(owner) };
};

// ownerTakes asks whether a frame element takes the pointer at a point of its document.
const ownerTakes = (owner, x, y) => {
  const b = ownerBox(owner);
  const hit = fromPoint(b.X + x * b.SX, b.Y + y * b.SY);
  return hit === owner ? { ok: true } : { by: sketch(hit), inside: !!hit };
};

// revealOwner scrolls so that a point of a frame's document can be reached.
const revealOwner = (owner, x, y) => {
  if (ownerTakes(owner, x, y).ok) return { ok: true };
  for (const block of REVEAL) {
    owner.scrollIntoView({ block, inline: 'nearest', behavior: 'instant' });
    if (ownerTakes(owner, x, y).ok) return { ok: true };
    const b = ownerBox(owner);
    scrollBy({ left: b.X + x * b.SX < 0 || b.X + x * b.SX >= innerWidth ? b.X + x * b.SX - innerWidth / 2 : 0,
      top: b.Y + y * b.SY - innerHeight / 2, behavior: 'instant' });
    if (ownerTakes(owner, x, y).ok) return { ok: true };
  }
  return ownerTakes(owner, x, y);
};
const elementAt = (x, y) => {
  const el = fromPoint(x, y);
  return el ? describe(el) : null;
};
