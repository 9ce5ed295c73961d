package gitremote

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"svc/internal/git"
	"svc/internal/git/pktline"
)

const (
	// MaxRefs is the maximum number of branches and tags that are read.
	MaxRefs = 20_000
	// maxAlso is the maximum number of refs with Options.Also.
	maxAlso = 150_000
	// maxAdvertised is the maximum size of the list of refs, in bytes: old servers
	// advertise all of them.
	maxAdvertised = 64 << 20
	maxRefName    = 1024

	uploadPack = "git-upload-pack"
)

// Refs are the branches and tags of a repository.
type Refs struct {
	List []git.Ref // full names; tags are not peeled
	Head string    // full name of the default branch; empty if unknown

	also         string
	v2           bool
	capabilities map[string]bool // of a server with protocol version 0 or 1
}

// Refs lists the branches and tags. Other refs, such as those of merge requests, are
// left out, except for those of Options.Also.
func (r *Remote) Refs(ctx context.Context) (*Refs, error) { return r.refs(ctx, uploadPack) }

func (r *Remote) refs(ctx context.Context, service string) (*Refs, error) {
	if r.streams() {
		if err := r.connect(ctx, service); err != nil {
			return nil, err
		}
		in := advertised(&paced{in: r.stream.in, rate: rate{after: r.stall, now: time.Now}})
		line, kind, err := pktline.ReadLine(in)
		if err != nil {
			return nil, r.stream.ended(ctx, err)
		}
		return r.readAdvertised(ctx, in, line, kind)
	}
	answer, err := r.discover(ctx, service)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if kind := answer.Header.Get("Content-Type"); kind != "application/x-"+service+"-advertisement" {
		return nil, fail("There is no Git repository at this URL, or its server supports only the dumb HTTP protocol.")
	}
	in := bufio.NewReaderSize(advertised(answer.Body), 64<<10)
	line, kind, err := pktline.ReadLine(in)
	if err == nil && kind == pktline.Data && strings.HasPrefix(line, "# service=") {
		if _, kind, err = pktline.Read(in); err == nil && kind == pktline.Flush {
			line, kind, err = pktline.ReadLine(in)
		}
	}
	if err != nil {
		return nil, broken(ctx, err)
	}
	if kind == pktline.Data && line == "version 2" {
		return r.listRefs(ctx, in)
	}
	return r.readAdvertised(ctx, in, line, kind)
}

// advertised limits the size of a list of refs.
func advertised(in io.Reader) io.Reader {
	return &limited{in: in, left: maxAdvertised, text: "The server's list of refs is too long."}
}

// listRefs lists the refs with protocol version 2. in contains the capabilities.
func (r *Remote) listRefs(ctx context.Context, in io.Reader) (*Refs, error) {
	for {
		line, kind, err := pktline.ReadLine(in)
		if err != nil {
			return nil, broken(ctx, err)
		}
		if kind != pktline.Data {
			break
		}
		if format, ok := strings.CutPrefix(line, "object-format="); ok && format != "sha1" {
			return nil, fail("The repository uses the object format %.20q. Only sha1 is supported.", format)
		}
	}
	b := pktline.Append(nil, "command=ls-refs\n")
	b = append(b, "0001"...)
	for _, arg := range []string{"symrefs", "ref-prefix HEAD", "ref-prefix " + git.Heads, "ref-prefix " + git.Tags} {
		b = pktline.Append(b, arg+"\n")
	}
	if r.also != "" {
		b = pktline.Append(b, "ref-prefix "+r.also+"\n")
	}
	answer, err := r.post(ctx, uploadPack, bytes.NewReader(pktline.AppendFlush(b)))
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body := bufio.NewReaderSize(advertised(answer.Body), 64<<10)
	refs := &Refs{also: r.also, v2: true}
	for {
		line, kind, err := pktline.ReadLine(body)
		if err != nil {
			return nil, broken(ctx, err)
		}
		if kind != pktline.Data {
			return refs, nil
		}
		fields := strings.Split(line, " ")
		if len(fields) < 2 {
			return nil, malformed()
		}
		if fields[1] == "HEAD" {
			for _, attribute := range fields[2:] {
				if target, ok := strings.CutPrefix(attribute, "symref-target:"); ok {
					refs.Head = target
				}
			}
			continue
		}
		if err := refs.add(fields[0], fields[1]); err != nil {
			return nil, err
		}
	}
}

// readAdvertised reads the ref advertisement of protocol versions 0 and 1.
func (r *Remote) readAdvertised(ctx context.Context, in io.Reader, line string, kind pktline.Kind) (*Refs, error) {
	refs := &Refs{also: r.also, capabilities: map[string]bool{}}
	var head string
	for first := true; kind == pktline.Data; {
		if line != "version 1" {
			name, capabilities, _ := strings.Cut(line, "\x00")
			if first { // only the first ref is followed by capabilities
				first = false
				for c := range strings.FieldsSeq(capabilities) {
					refs.capabilities[c] = true
					if target, ok := strings.CutPrefix(c, "symref=HEAD:"); ok {
						refs.Head = target
					}
					if format, ok := strings.CutPrefix(c, "object-format="); ok && format != "sha1" {
						return nil, fail("The repository uses the object format %.20q. Only sha1 is supported.", format)
					}
				}
			}
			id, ref, found := strings.Cut(name, " ")
			switch {
			case strings.HasPrefix(line, "ERR "):
				return nil, said(line)
			case !found:
				return nil, malformed()
			case ref == "HEAD":
				head = id
			case strings.HasSuffix(ref, "^{}"):
			default:
				if err := refs.add(id, ref); err != nil {
					return nil, err
				}
			}
		}
		var err error
		if line, kind, err = pktline.ReadLine(in); err != nil {
			return nil, broken(ctx, err)
		}
	}
	if refs.Head == "" && head != "" { // very old servers do not send the default branch
		for _, ref := range refs.List {
			if string(ref.ID) == head && strings.HasPrefix(ref.Name, git.Heads) {
				refs.Head = ref.Name
				break
			}
		}
	}
	return refs, nil
}

func (r *Refs) add(id, name string) error {
	if !strings.HasPrefix(name, git.Heads) && !strings.HasPrefix(name, git.Tags) && (r.also == "" || !strings.HasPrefix(name, r.also)) {
		return nil
	}
	oid, ok := git.ParseOID(id)
	if !ok || oid == git.ZeroOID || len(name) > maxRefName {
		return malformed()
	}
	most := MaxRefs
	if r.also != "" {
		most = maxAlso
	}
	if len(r.List) == most {
		return fail("The repository has more than %d branches and tags.", most)
	}
	r.List = append(r.List, git.Ref{Name: name, ID: oid})
	return nil
}

// maxHave is the maximum number of commits that are sent as "have" lines.
const maxHave = 1000

// Pack requests a pack with all objects that are reachable from want but not from
// have. The caller must close the pack.
func (r *Remote) Pack(ctx context.Context, refs *Refs, want, have []git.OID) (io.ReadCloser, error) {
	var b []byte
	if refs.v2 {
		b = pktline.Append(b, "command=fetch\n")
		b = append(b, "0001"...)
		b = pktline.Append(b, "ofs-delta\n")
	}
	capabilities := " side-band-64k ofs-delta agent=git/svc"
	seen := map[git.OID]bool{}
	for _, id := range want {
		if seen[id] {
			continue
		}
		seen[id] = true
		line := "want " + string(id)
		if !refs.v2 {
			line, capabilities = line+capabilities, ""
		}
		b = pktline.Append(b, line+"\n")
	}
	if !refs.v2 {
		b = pktline.AppendFlush(b)
	}
	for _, id := range have[:min(len(have), maxHave)] {
		b = pktline.Append(b, "have "+string(id)+"\n")
	}
	b = pktline.Append(b, "done\n")
	if refs.v2 {
		b = pktline.AppendFlush(b)
	}
	if r.streams() {
		if _, err := r.stream.out.Write(b); err != nil {
			return nil, r.stream.ended(ctx, err)
		}
		if err := skipToPack(r.stream.in, false); err != nil {
			return nil, r.stream.ended(ctx, err)
		}
		return r.newPack(ctx, r.stream.in, r.stream), nil
	}
	answer, err := r.post(ctx, uploadPack, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	if body, ok := answer.Body.(*stalling); ok {
		body.unpaced = true // newPack's reader checks the rate
	}
	in := bufio.NewReaderSize(answer.Body, 64<<10)
	if err := skipToPack(in, refs.v2); err != nil {
		answer.Body.Close()
		return nil, broken(ctx, err)
	}
	return r.newPack(ctx, in, answer.Body), nil
}

// skipToPack reads the response up to the pack.
func skipToPack(in io.Reader, v2 bool) error {
	for range 2 * maxAlso {
		line, kind, err := pktline.ReadLine(in)
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(line, "ERR "):
			return said(line)
		case v2 && kind == pktline.Data && line == "packfile":
			return nil
		case !v2 && line == "NAK", !v2 && strings.HasPrefix(line, "ACK ") && len(strings.Fields(line)) == 2:
			return nil
		}
	}
	return malformed()
}

// prepareTime is the time limit for the first byte of a pack: the server counts and
// compresses objects before, and reports its progress meanwhile.
const prepareTime = 30 * time.Minute

// newPack returns a reader of a pack that must arrive at minRate once it has begun.
func (r *Remote) newPack(ctx context.Context, in io.Reader, body io.Closer) *packReader {
	p := &packReader{ctx: ctx, in: in, close: body, rate: &rate{after: r.stall, now: time.Now}}
	p.late = time.AfterFunc(prepareTime, func() { _ = body.Close() })
	return p
}

// packReader reads the data of a side band.
type packReader struct {
	ctx   context.Context
	in    io.Reader
	close io.Closer
	rest  []byte
	done  bool
	rate  *rate       // nil if the rate is not limited
	late  *time.Timer // closes the connection if no data arrives; nil without a limit
}

// Read implements io.Reader.
func (p *packReader) Read(b []byte) (int, error) {
	for len(p.rest) == 0 {
		if p.done {
			return 0, io.EOF
		}
		if p.late == nil && p.rate != nil {
			p.rate.start()
		}
		data, kind, err := pktline.Read(p.in)
		if p.late == nil && p.rate != nil && err == nil {
			err = p.rate.add(len(data))
		}
		switch {
		case err != nil && p.late != nil && !p.late.Stop():
			return 0, &Failure{Text: fmt.Sprintf("The server did not begin to send objects within %s.", prepareTime), Temporary: true, cause: err}
		case err != nil:
			return 0, broken(p.ctx, err)
		case kind != pktline.Data:
			p.done = true
		case len(data) == 0:
			return 0, malformed()
		case data[0] == 1:
			p.rest = data[1:]
			if p.late != nil {
				p.late.Stop()
				p.late = nil
			}
		case data[0] == 2:
			// Progress messages are ignored.
		case data[0] == 3:
			return 0, said("ERR " + string(data[1:]))
		default:
			return 0, malformed()
		}
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// Close ends the transfer.
func (p *packReader) Close() error {
	if p.late != nil {
		p.late.Stop()
	}
	return p.close.Close()
}

// said returns the error for a message of the other server. The message is not
// shown, because it may repeat the request.
func said(line string) error {
	return &Failure{Text: "The server reported an error.", cause: errors.New(line)}
}

func malformed() error { return fail("The server does not follow the Git protocol.") }

func broken(ctx context.Context, err error) error {
	var failure *Failure
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &failure):
		return err
	case errors.Is(err, pktline.ErrMalformed):
		return malformed()
	}
	return &Failure{Text: "The connection to the server was interrupted.", Temporary: true, cause: err}
}
