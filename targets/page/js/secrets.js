// What is secret: a field that is or ever was a password field, and fields whose
// autocomplete says so. Their contents go to the host, which needs them to find
// echoes of them, and to nobody else.
const SECRET_AUTOCOMPLETE = /(^|\s)(current-password|new-password|one-time-code)(\s|$)/i;
const everSecret = new WeakSet();
const secrets = new Set();

const isSecret = (el) => {
  const tag = el.localName;
  if (tag !== 'input' && tag !== 'textarea') return false;
  if (everSecret.has(el)) return true;
  if ((tag === 'input' && el.type === 'password') || SECRET_AUTOCOMPLETE.test(attr(el, 'autocomplete') || '')) {
    everSecret.add(el);
    return true;
  }
  return false;
};

const tell = (o) => {
  try {
    if (typeof __reins_report === 'function') __reins_report(JSON.stringify(o));
  } catch { /* the host is detached: nobody listens */ }
};

const keepSecret = (el) => {
  const v = el.value;
  if (!v || secrets.has(v)) return;
  if (secrets.size > 500) secrets.clear();
  secrets.add(v);
  tell({ secret: v });
};

const secretFields = () => {
  const found = [];
  for (const root of roots()) {
    for (const el of root.querySelectorAll('input, textarea')) if (isSecret(el)) found.push(el);
  }
  return found;
};

const onSecretEvent = (e) => {
  const el = e.composedPath()[0];
  if (!(el instanceof Element)) return;
  if ((el.localName === 'input' || el.localName === 'textarea') && isSecret(el)) {
    if (e.type !== 'input' && e.type !== 'focusin' && (e.type !== 'keydown' || e.key === 'Enter')) keepSecret(el);
  }
};

// A field that a page turns from password into text stays secret. Only the
// attributes that decide it are watched.
const typeWatch = new MutationObserver((list) => {
  for (const m of list) {
    const el = m.target;
    if (el.localName !== 'input' && el.localName !== 'textarea') continue;
    const was = m.oldValue || '';
    if (m.attributeName === 'type' ? was.toLowerCase() === 'password' : SECRET_AUTOCOMPLETE.test(was)) everSecret.add(el);
  }
});
const watchedRoots = new WeakSet();
const watchTypes = () => {
  for (const root of roots()) {
    if (watchedRoots.has(root)) continue;
    watchedRoots.add(root);
    typeWatch.observe(root, { subtree: true, attributes: true, attributeOldValue: true, attributeFilter: ['type', 'autocomplete'] });
  }
};

// allSecrets is every secret known in this document, what fields hold now included.
const allSecrets = () => {
  for (const el of secretFields()) if (el.value) secrets.add(el.value);
  return Array.from(secrets);
};
