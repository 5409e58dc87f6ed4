// Package page drives Pages: tabs of one Chromium, over its DevTools pipe.
//
// The host half keeps the browser and what lives in it: [Host] starts and ends
// the process, makes incarnations, fences them, and hears what happens. The
// acting half, in the same package, finds elements, gives input and looks. They
// meet in incarnation and frame.
//
// From the outside in:
//
//	launch*, reap*      the process: found, started, and never left behind
//	internal/cdp        the link: who may write, and how a call ends
//	host, browser       one life of the browser; slots (resources) and tabs
//	attach, incarnation one life of a Page: its session, set up
//	frame, frame_tree   the documents of a Page, in whatever process they live
//	nav, events         what happened without us
//	fence               revoke, barrier, destroy, close
//	screencast, cookies, downloads
//	world, js           our script in a world of its own in every document
//	locate*, prepare*   finding an element and checking that it can be acted on
//	run*, input, keys   giving input and saying what is known of it
//	read*, observe*, verify, redact
//
// Invariants:
//
//	I1  No process of the browser outlives this one, however it ends: the parent-death signal, the end of the pipe, and a reaper at the next start.
//	I2  After Revoke no command byte of the incarnation, or of its frames' sessions, is written.
//	I3  Barrier returns nil only after all earlier input to the tab has had its effect; a tab made anew has none.
//	I4  A tab loads its URL with exactly one request; attaching to a living tab makes none.
//	I5  A tab is adopted only if a session can still drive all of it: not half made, not crashed, not behind a dialog of an ended session.
//	I6  Nothing is accepted on its own: no dialog, no certificate, no download outside of its directory.
//	I7  Snapshot and events carry confirmed state: the browser's own error page is none, and URL and title are of one document.
//	I8  A frame handle never reaches another document than its own.
//	I9  A panic in a Page's work ends that Page with an event; one in the browser's work ends the browser.
//	I10 What one Page does (blocking, flooding, crashing) delays no other: its events have a queue of their own, and no two Pages share a process.
//
// Pages that a Page opens are counted for it and otherwise left alone: they run,
// nothing drives them, and they are closed with their opener. One that stands
// behind a dialog of its own can hold up an opener of the same origin; its
// barrier is then missed, and both are ended.
//
// Only actors, supervisors and cmd import this package, through package targets.
package page
