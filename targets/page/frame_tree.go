package page

import (
	"encoding/json"
	"strings"

	cdprotocol "github.com/chromedp/cdproto/cdp"
	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"

	"reins/targets/page/internal/cdp"
)

// node is a frame of the tree: it stays while documents come and go in it.
type node struct {
	id       cdprotocol.FrameID
	parent   *node
	children []*node
	sess     *cdp.Session
	doc      *frame // nil between two documents
}

// worldKey names the isolated world of a frame in one session. A frame has one
// document at a time, and the browser tells the end of a world before the next.
type worldKey struct {
	sess  *cdp.Session
	frame cdprotocol.FrameID
}

// tree is the frames of a Page. The incarnation's mu guards it.
type tree struct {
	root   *node
	nodes  map[cdprotocol.FrameID]*node
	worlds map[worldKey]worldRef
	// contexts finds the frame of a world by its id, also shortly after its end.
	contexts map[contextKey]cdprotocol.FrameID
}

// maxContexts bounds how many ended worlds are remembered.
const maxContexts = 1024

type contextKey struct {
	sess *cdp.Session
	id   runtime.ExecutionContextID
}

func newTree() tree {
	return tree{
		nodes: map[cdprotocol.FrameID]*node{}, worlds: map[worldKey]worldRef{},
		contexts: map[contextKey]cdprotocol.FrameID{},
	}
}

// list appends the documents below n in tree order.
func (n *node) list(to []*frame) []*frame {
	if n == nil {
		return to
	}
	if n.doc != nil {
		to = append(to, n.doc)
	}
	for _, c := range n.children {
		to = c.list(to)
	}
	return to
}

// attach adds a frame, or moves it into a session where it is known.
func (t *tree) attach(id, parent cdprotocol.FrameID, sess *cdp.Session) *node {
	if n := t.nodes[id]; n != nil {
		n.sess = sess
		return n
	}
	n := &node{id: id, sess: sess}
	if parent == "" {
		t.root = n
	} else {
		n.parent = t.nodes[parent]
		if n.parent == nil {
			return nil // of a frame that is gone
		}
		n.parent.children = append(n.parent.children, n)
	}
	t.nodes[id] = n
	return n
}

// remove takes a frame and all below it out.
func (t *tree) remove(n *node) {
	for len(n.children) > 0 {
		t.remove(n.children[0])
	}
	n.doc = nil
	delete(t.nodes, n.id)
	if t.root == n {
		t.root = nil
	}
	if n.parent == nil {
		return
	}
	for i, c := range n.parent.children {
		if c == n {
			n.parent.children = append(n.parent.children[:i:i], n.parent.children[i+1:]...)
			return
		}
	}
}

// commit puts a new document into a frame.
func (t *tree) commit(p *incarnation, sess *cdp.Session, d *cdprotocol.Frame) *frame {
	n := t.attach(d.ID, d.ParentID, sess)
	if n == nil {
		return nil
	}
	for len(n.children) > 0 {
		t.remove(n.children[0])
	}
	f := &frame{
		p: p, id: d.ID, document: d.LoaderID, main: d.ParentID == "", name: d.Name, sess: sess,
		url: d.URL + d.URLFragment, failed: d.UnreachableURL != "",
	}
	if f.failed {
		f.url = d.UnreachableURL
	}
	if n.parent != nil {
		f.parent = n.parent.doc
		if f.parent == nil {
			n.doc = nil
			return nil // its parent is between two documents: it goes with the old one
		}
	}
	n.doc = f
	return f
}

// live reports whether f is the document that its frame holds now.
func (t *tree) live(f *frame) bool {
	n := t.nodes[f.id]
	return n != nil && n.doc == f
}

// adopt takes over the frames that a session had when it was set up. What events
// said meanwhile is newer.
func (t *tree) adopt(p *incarnation, sess *cdp.Session, ft *cdpage.FrameTree) {
	if n := t.nodes[ft.Frame.ID]; n == nil || n.doc == nil || n.sess != sess || n.doc.document != ft.Frame.LoaderID {
		t.commit(p, sess, ft.Frame)
	}
	for _, c := range ft.ChildFrames {
		t.adopt(p, sess, c)
	}
}

// drop forgets what lived in a session that ended.
func (t *tree) drop(sess *cdp.Session) {
	for _, n := range t.nodes {
		if n.sess == sess {
			n.doc = nil
		}
	}
	t.clear(sess)
}

// clear forgets the worlds of a session.
func (t *tree) clear(sess *cdp.Session) {
	for k := range t.worlds {
		if k.sess == sess {
			delete(t.worlds, k)
		}
	}
	for k := range t.contexts {
		if k.sess == sess {
			delete(t.contexts, k)
		}
	}
}

// auxData is what the browser says of an execution context.
type auxData struct {
	FrameID cdprotocol.FrameID `json:"frameId"`
}

func (t *tree) created(sess *cdp.Session, world string, c *runtime.ExecutionContextDescription) {
	var aux auxData
	if c == nil || c.Name != world || json.Unmarshal(c.AuxData, &aux) != nil {
		return
	}
	t.worlds[worldKey{sess, aux.FrameID}] = worldRef{c.ID, c.UniqueID}
	if len(t.contexts) >= maxContexts {
		t.contexts = map[contextKey]cdprotocol.FrameID{}
		for k, w := range t.worlds {
			t.contexts[contextKey{k.sess, w.id}] = k.frame
		}
	}
	t.contexts[contextKey{sess, c.ID}] = aux.FrameID
}

func (t *tree) destroyed(unique string) {
	for k, w := range t.worlds {
		if w.unique == unique {
			delete(t.worlds, k)
			return
		}
	}
}

// realNavigation reports whether a navigation leads to another document.
func realNavigation(kind cdpage.FrameStartedNavigatingNavigationType) bool {
	return !strings.Contains(strings.ToLower(string(kind)), "samedocument")
}
