// Refs and handles. A ref is given to the caller and means one element as it was
// when it was listed; a handle is for the steps of one operation.
const DOC = (() => {
  // Letters only, so that no number a page keeps secret can be part of an id.
  const bytes = crypto.getRandomValues(new Uint8Array(9));
  return Array.from(bytes, (b) => 'abcdefghijklmnopqrstuvwxyzabcdef'[b % 26]).join('');
})();
const records = new WeakMap(); // element → { id, key, step } of its current ref
const byRef = new Map();
const handles = new WeakMap();
const byHandle = new Map();
let nextRef = 1;
let nextHandle = 1;

// step counts what the page calls a new place without a new document. A change
// of the fragment alone is none.
const sansHash = (u) => u.split('#', 1)[0];
const entryKey = () => (globalThis.navigation && navigation.currentEntry ? navigation.currentEntry.key : '');
const place = { key: entryKey(), url: location.href, count: 0 };
const step = () => {
  const key = entryKey();
  const url = location.href;
  const onlyHash = url !== place.url && sansHash(url) === sansHash(place.url);
  if (!onlyHash && (key !== place.key || url !== place.url) && place.key !== '') place.count += 1;
  place.key = key;
  place.url = url;
  return place.count;
};

const destinationOf = (el) => {
  const tag = tagOf(el);
  if (tag === 'a' || tag === 'area') return attr(el, 'href') || '';
  if (tag !== 'button' && tag !== 'input') return '';
  const own = attr(el, 'formaction');
  if (own) return own;
  return (el.type === 'submit' || el.type === 'image') && el.form ? attr(el.form, 'action') || '' : '';
};
const keyOf = (el, role, name) => role + '\u0000' + name + '\u0000' + (LABELED.has(el.localName) ? labelWords(el) : '') + '\u0000' +
  (attr(el, 'aria-labelledby') || '') + '\u0000' + destinationOf(el);

const prune = (map) => {
  if (map.size < 50000) return;
  for (const [id, ref] of map) if (!ref.deref()) map.delete(id);
};

// refOf gives the element's ref, a new one when it is no longer what it was. at
// is the current step.
const refOf = (el, role, name, at) => {
  const key = keyOf(el, role, name);
  let rec = records.get(el);
  if (!rec || rec.key !== key) {
    rec = { id: nextRef, key, step: 0 };
    nextRef += 1;
    records.set(el, rec);
    prune(byRef);
    byRef.set(rec.id, new WeakRef(el));
  }
  rec.step = at;
  return rec.id;
};

// resolveRef returns the element of a ref, or why it is stale.
const resolveRef = (id) => {
  const el = byRef.get(id) && byRef.get(id).deref();
  if (!el || !el.isConnected || el.ownerDocument !== document) return { why: 'its element is gone' };
  const rec = records.get(el);
  if (!rec || rec.id !== id) return { why: 'its element became something else' };
  if (rec.step !== step()) return { why: 'the page moved to another place since it was listed' };
  const role = roleOf(el);
  if (keyOf(el, role, nameOf(el, role)) !== rec.key) {
    return { why: 'the role, name, label or destination of its element changed' };
  }
  return { el };
};

const handleOf = (el) => {
  let h = handles.get(el);
  if (!h) {
    h = nextHandle;
    nextHandle += 1;
    handles.set(el, h);
    prune(byHandle);
    byHandle.set(h, new WeakRef(el));
  }
  return h;
};
const held = (h) => {
  const ref = byHandle.get(h);
  const el = ref && ref.deref();
  return el && el.isConnected ? el : null;
};
