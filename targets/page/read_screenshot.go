package page

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"image"
	_ "image/jpeg" // the sizes of what the browser captures
	_ "image/png"

	cdpcore "github.com/chromedp/cdproto/cdp"
	cdpage "github.com/chromedp/cdproto/page"

	"reins/protocol"
)

// maxImageBytes leaves room in a reply for the JSON beside the image.
const maxImageBytes = protocol.MaxReplyBytes - 128<<10

func (p *incarnation) readScreenshot(ctx context.Context, raw json.RawMessage) (protocol.ReadReply, string) {
	var a protocol.ScreenshotArguments
	if pr := decodeRead(raw, &a); pr != nil {
		return protocol.ReadReply{Problem: pr}, ""
	}
	if p.dialog() != nil {
		return protocol.ReadReply{Problem: p.dialogProblem()}, ""
	}
	g, err := retry(ctx, p, func() (geometry, error) { return p.measure(ctx) })
	if err != nil {
		return protocol.ReadReply{Problem: p.lookFailed(ctx, err)}, ""
	}
	o := p.skeleton()
	o.Viewport = &protocol.Viewport{Width: int(g.W), Height: int(g.H), Scale: g.DPR}
	o.Page.Settled = !o.Page.Loading
	shot, pr := p.capture(ctx, o, a)
	if pr != nil {
		return protocol.ReadReply{Problem: pr}, ""
	}
	return protocol.ReadReply{Observation: o, ImageBytes: shot}, g.String()
}

// capture takes a picture of the viewport and describes it in o. What cannot be
// captured is an error, never a placeholder.
func (p *incarnation) capture(ctx context.Context, o *protocol.Observation, a protocol.ScreenshotArguments) ([]byte, *protocol.Problem) {
	scoped, end := p.untilDialog(ctx)
	defer end()
	params := cdpage.CaptureScreenshotParams{Format: cdpage.CaptureScreenshotFormatPng}
	media := "image/png"
	if a.Format == "jpeg" {
		params.Format, media = cdpage.CaptureScreenshotFormatJpeg, "image/jpeg"
		if q := int64(a.Quality); q > 0 {
			params.Quality = &q
		}
	}
	res, err := cdpcore.Call(scoped, p.session(), cdpage.CaptureScreenshot, params)
	if err != nil {
		if dialogCut(scoped, err) || p.dialog() != nil {
			return nil, p.dialogProblem()
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, problem(protocol.ReasonCaptureFailed, "no picture came within the deadline; try again")
		}
		return nil, problem(protocol.ReasonCaptureFailed, "no picture could be taken: %v", err)
	}
	size, kind, err := image.DecodeConfig(bytes.NewReader(res.Data))
	if err != nil || size.Width == 0 || size.Height == 0 {
		return nil, problem(protocol.ReasonCaptureFailed, "what the browser captured is no picture; try again")
	}
	if len(res.Data) > maxImageBytes {
		return nil, problem(protocol.ReasonImageTooLarge, "the picture has %d bytes, more than the %d that fit; ask for jpeg or a smaller viewport", len(res.Data), maxImageBytes)
	}
	if "image/"+kind != media {
		return nil, problem(protocol.ReasonCaptureFailed, "the browser captured %s instead of %s; try again", kind, media)
	}
	o.Image = &protocol.Image{Width: size.Width, Height: size.Height, Detail: "original", MediaType: media}
	o.Transform = &protocol.Transform{A: float64(o.Viewport.Width) / float64(size.Width), D: float64(o.Viewport.Height) / float64(size.Height)}
	return res.Data, nil
}
