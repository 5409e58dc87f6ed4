// What the host may call.
globalThis.__reins = { document, snapshot, geometry, find, refsFor, shows, textOf, aim, still, ownerBox, ownerTakes, revealOwner, elementAt,
  watch, seenBy, focus, field, put, focused, settle, change, scrollMark, scrollMoved, twoFrames, allSecrets };
if (document.documentElement) watchTypes();
addEventListener('DOMContentLoaded', watchTypes, { capture: true, once: true });
