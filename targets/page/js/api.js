// What the host may call.
globalThis.__reins = { document, snapshot, geometry, find, refsFor, shows, textOf, aim, still, ownerBox, ownerTakes, revealOwner, elementAt,
  watch, seenBy, focus, hasFocus, field, put, focused, settle, change, scrollMark, scrollMoved, twoFrames };
watchTypes();
addEventListener('DOMContentLoaded', watchTypes, { capture: true, once: true });
