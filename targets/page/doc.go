// Package page drives Pages: the tabs of one Chromium process, over its
// DevTools pipe.
package page
