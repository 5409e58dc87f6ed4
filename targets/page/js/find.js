// Locators. Every call looks afresh; nothing is remembered by position or name.
const CONTROL_QUERY = 'input, textarea, select, button, meter, progress, output, [aria-label], [aria-labelledby], [contenteditable]';

const matcher = (needle, how) => {
  const want = squeeze(needle);
  const fold = want.toLowerCase();
  if (how === 'fold') return (s) => squeeze(s).toLowerCase().includes(fold);
  if (how === 'part') return (s) => squeeze(s).includes(want);
  return (s) => squeeze(s) === want;
};

const byRole = (all, role, named) => {
  const found = [];
  for (const root of all) {
    for (const el of root.querySelectorAll('*')) {
      if (roleOf(el) === role && (!named || named(nameOf(el, role)))) found.push(el);
    }
  }
  return found;
};

const byLabel = (all, named) => {
  const found = [];
  for (const root of all) {
    for (const el of root.querySelectorAll(CONTROL_QUERY)) {
      if (kindOf(el) === '' && !INTERACTIVE.has(roleOf(el))) continue;
      if (named(labelOf(el))) found.push(el);
    }
  }
  return found;
};

// byText finds the innermost elements whose visible words match.
const byText = (all, needle, how) => {
  const found = [];
  const match = matcher(needle, how);
  const maybe = matcher(needle, 'fold');
  const search = (el) => {
    const tag = tagOf(el);
    if (tag === 'input') {
      if (['button', 'submit', 'reset'].includes(el.type) && match(buttonValue(el))) { found.push(el); return true; }
      return false;
    }
    if (SILENT_TAGS.has(tag) || !maybe(el.textContent)) {
      if (tag === 'input' || SILENT_TAGS.has(tag)) return false;
      let inner = false;
      for (const b of el.querySelectorAll('input')) inner = search(b) || inner;
      return inner;
    }
    let inner = false;
    for (const c of el.children) inner = search(c) || inner;
    if (inner) return true;
    if (match(wordsOf(el))) { found.push(el); return true; }
    return false;
  };
  for (const root of all) {
    if (root === document) { if (document.body) search(document.body); continue; }
    for (const c of root.children) search(c);
  }
  return found;
};

const select = (loc) => {
  const all = roots();
  const how = loc.contains ? 'fold' : 'whole';
  if (loc.role) return byRole(all, loc.role.toLowerCase(), loc.name ? matcher(loc.name, how) : null);
  if (loc.label) return byLabel(all, matcher(loc.label, how));
  if (loc.text) return byText(all, loc.text, how);
  const found = [];
  const query = loc.css || (loc.test_id ? '[data-testid]' : '[placeholder], [aria-placeholder]');
  for (const root of all) found.push(...root.querySelectorAll(query));
  if (loc.css) return found;
  if (loc.test_id) return found.filter((el) => attr(el, 'data-testid') === loc.test_id);
  const want = matcher(loc.placeholder, how);
  return found.filter((el) => want(attr(el, 'placeholder') || attr(el, 'aria-placeholder') || ''));
};

// describe tells what an element is, for people and programs; never what it holds.
const describe = (el) => {
  const role = roleOf(el);
  const r = rectOf(el);
  return { h: handleOf(el), role, name: cut(nameOf(el, role), NAME_MAX), states: statesOf(el, role, activeDeep(), isDisabled(el)),
    box: [r.left, r.top, r.width, r.height] };
};

// sketch names an element in a few words for a message.
const sketch = (el) => {
  if (!el) return null;
  const role = roleOf(el);
  return { tag: tagOf(el) + (el.id && typeof el.id === 'string' ? '#' + el.id : ''), role,
    name: cut(nameOf(el, role), 200) };
};

const MAX_ITEMS = 11;

// find answers {total, visible, items}: items are the visible matches, those that
// can be reached in front of those that cannot.
const find = (loc, purpose) => {
  let list;
  if (loc.ref) {
    if (loc.doc !== DOC) return { other: true };
    const got = resolveRef(loc.ref);
    if (got.why) return { stale: got.why };
    list = [got.el];
  } else {
    try {
      list = select(loc);
    } catch (e) {
      if (e instanceof DOMException && e.name === 'SyntaxError') return { bad: 'this is not a CSS selector' };
      throw e;
    }
  }
  let seen = list.filter(isVisible);
  const visible = seen.length;
  if (visible > 1) {
    const modals = modalNow();
    const front = seen.filter((el) => !isBehind(el, modals) && !isHiddenFromReaders(el));
    if (front.length) seen = front;
  }
  const items = seen.slice(0, MAX_ITEMS).map((el) => {
    const o = describe(el);
    if (purpose) o.check = check(el, purpose);
    return o;
  });
  return { total: list.length, visible: seen.length, items };
};

// refsFor lists elements to the caller: from then on their refs hold.
const refsFor = (hs) => ({
  doc: DOC,
  ids: hs.map((h) => {
    const el = held(h);
    if (!el) return 0;
    const role = roleOf(el);
    return refOf(el, role, nameOf(el, role), step());
  }),
});

// shows reports whether the words are visible: as a part of what an element says,
// or as the whole of it.
const shows = (needle, whole) => byText(roots(), needle, whole ? 'whole' : 'part').some(isVisible);
const textOf = (h) => {
  const el = held(h);
  return el ? squeeze(wordsOf(el)) : null;
};
