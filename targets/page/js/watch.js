// Proof of delivery: trusted events, seen before the page can stop them.
const KINDS = ['pointerdown', 'pointermove', 'pointerup', 'mousedown', 'mouseup', 'click', 'auxclick', 'dblclick', 'contextmenu',
  'mousemove', 'keydown', 'keyup', 'beforeinput', 'input', 'wheel', 'dragstart', 'drop'];
const TOLD = new Set(['mousedown', 'mouseup', 'click', 'auxclick', 'contextmenu', 'keydown', 'wheel', 'drop']);
const SECRET_KINDS = ['change', 'focusin', 'focusout', 'submit'];
let watching = null;

const onEvent = (e) => {
  if (e.type === 'input' || e.type === 'keydown') onSecretEvent(e);
  const w = watching;
  if (!w || !e.isTrusted) return;
  const path = e.composedPath();
  const el = w.el;
  const hit = el === null ? true : path.includes(el) || (el.labels && path.some((p) => p.localName === 'label' && p.control === el));
  let seen = w.seen[e.type];
  if (!seen) seen = w.seen[e.type] = { n: 0, hit: 0 };
  seen.n += 1;
  if (hit) seen.hit += 1; else seen.on = path[0] instanceof Element ? path[0] : null;
  if (el === null && path[0] instanceof Element) {
    if (w.first === undefined) w.first = path[0];
    seen.same = w.first === path[0];
  }
  seen.last = e;
  if (TOLD.has(e.type) && seen.n <= 6) tell({ w: w.id, t: e.type, hit });
};

const listen = () => {
  // Adding the same listener again does nothing; after document.open() it restores it.
  for (const k of KINDS) addEventListener(k, onEvent, { capture: true, passive: true });
  for (const k of SECRET_KINDS) addEventListener(k, onSecretEvent, { capture: true, passive: true });
};

let watches = 0;
const watch = (h) => {
  listen();
  const el = h ? held(h) : null;
  if (h && !el) return '';
  watches += 1;
  watching = { id: DOC + watches, el, seen: {} };
  return watching.id;
};
// seenBy ends a watch (unless it is kept) and tells what came.
const seenBy = (id, keep) => {
  const w = watching;
  if (!w || w.id !== id) return null;
  if (!keep) watching = null;
  const out = {};
  for (const [k, s] of Object.entries(w.seen)) {
    out[k] = { n: s.n, hit: s.hit, same: s.same, on: s.on ? sketch(s.on) : undefined, first: w.first ? sketch(w.first) : undefined, stopped: s.last.defaultPrevented };
  }
  return { seen: out, there: w.el === null || (w.el.isConnected && isVisible(w.el)), over: w.el !== null && w.el.matches(':hover') };
};

addEventListener('pagehide', () => { for (const el of secretFields()) keepSecret(el); }, { capture: true });
listen();
