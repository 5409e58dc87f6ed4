package page

import "strings"

// Features of the browser that would act on their own: fetch in the
// background, fetch twice, keep documents of pages that were left, or show
// surfaces of their own.
var disabledFeatures = []string{
	"AcceptCHFrame",
	"AutofillServerCommunication",
	"BackForwardCache",
	"CertificateTransparencyComponentUpdater",
	"DialMediaRouteProvider",
	"GlobalMediaControls",
	"HttpsFirstBalancedModeAutoEnable",
	"HttpsUpgrades",
	"InterestFeedContentSuggestions",
	"LensOverlay",
	"MediaRouter",
	"NetworkTimeServiceQuerying",
	"OptimizationGuideModelDownloading",
	"OptimizationHints",
	"Prerender2",
	"ProcessPerSiteUpToMainFrameThreshold",
	"Translate",
	// Each window would carry two pages of the browser's own.
	"WebUIOmniboxAimPopup",
	"WebUIOmniboxPopup",
}

// Features that the browser has and does not use by itself.
var enabledFeatures = []string{
	// The frames of a site in two Pages do not share a process: one that is
	// blocked, or ended by a fence, takes no other Page's frames with it.
	"DisableProcessReuse",
}

// baseFlags are the flags of every managed browser.
var baseFlags = []string{
	"--remote-debugging-pipe",
	"--no-first-run",
	"--no-default-browser-check",
	"--no-pings",
	"--no-service-autorun",
	"--disable-background-networking",
	"--disable-breakpad",
	"--disable-client-side-phishing-detection",
	"--disable-component-extensions-with-background-pages",
	"--disable-component-update",
	"--disable-crash-reporter",
	"--disable-default-apps",
	"--disable-domain-reliability",
	"--disable-field-trial-config",
	"--disable-prompt-on-repost",
	"--disable-search-engine-choice-screen",
	"--disable-sync",
	"--metrics-recording-only",
	"--password-store=basic",
	"--use-mock-keychain",
	// A Page behind another is as alive as the one in front.
	"--disable-background-timer-throttling",
	"--disable-backgrounding-occluded-windows",
	"--disable-renderer-backgrounding",
	"--disable-hang-monitor",
	// Documents that were left stay left: a ref never comes back to life.
	"--disable-back-forward-cache",
	// One process a Page, whatever the number: a crash, or a fence that has to
	// end a process, takes nobody else.
	"--renderer-process-limit=1000",
	"--site-per-process",
	"--force-color-profile=srgb",
	"--disable-gpu",
	"--mute-audio",
	"--window-size=1920,1080",
}

// browserArgs are the arguments of the browser for these options.
func browserArgs(o Options, bin string, smallSHM bool) []string {
	args := append([]string{}, baseFlags...)
	args = append(args, "--user-data-dir="+o.ProfileDir)
	if !o.Headful && !isHeadlessShell(bin) {
		args = append(args, "--headless=new")
	}
	if smallSHM {
		args = append(args, "--disable-dev-shm-usage")
	}
	// The browser takes the last list of features only, so ours and the user's are one.
	off, on := disabledFeatures, enabledFeatures
	for _, f := range o.ExtraFlags {
		if v, ok := strings.CutPrefix(f, "--disable-features="); ok {
			off = append(off[:len(off):len(off)], v)
		} else if v, ok := strings.CutPrefix(f, "--enable-features="); ok {
			on = append(on[:len(on):len(on)], v)
		} else {
			args = append(args, f)
		}
	}
	return append(args, "--disable-features="+strings.Join(off, ","), "--enable-features="+strings.Join(on, ","), "about:blank")
}
