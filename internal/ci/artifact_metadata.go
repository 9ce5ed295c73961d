package ci

import (
	"archive/zip"
	"bufio"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"svc/internal/errs"
)

// metadataVersion begins the list of the files of an archive. The list has the
// form that the public server gives it: texts with their length before them,
// first this one and the faults that were met, then the path and the facts of
// each file.
const metadataVersion = "GitLab Build Artifacts Metadata 0.0.2\n"

// entryFacts are what the list tells of a file.
type entryFacts struct {
	Modified int64  `json:"modified"`
	Mode     string `json:"mode"`
	CRC      uint32 `json:"crc,omitempty"`
	Size     uint64 `json:"size,omitempty"`
	Zipped   uint64 `json:"zipped,omitempty"`
}

// listArchive stores the list of the files of an archive that was stored, nil
// when the archive can not be read: it is kept as it is then.
func (s *Service) listArchive(ctx context.Context, j *Job, archive *Artifact) (*Artifact, error) {
	r, err := openZip(ctx, s.Blobs, archive)
	if errs.Is(err, errs.KindUnprocessable) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read archive: %w", err)
	}
	form := artifactForms()[MetadataFile]
	list := &Artifact{
		JobID: j.ID, ProjectID: j.ProjectID, Kind: MetadataFile, Format: form.format, Filename: form.name,
		ExpiresAt: archive.ExpiresAt, CreatedAt: archive.CreatedAt, blob: artifactKey(j, MetadataFile),
	}
	out, in := io.Pipe()
	go func() { in.CloseWithError(writeMetadata(in, r.File)) }()
	if err := errors.Join(s.storeArtifact(ctx, list, out), out.Close()); err != nil {
		return nil, fmt.Errorf("list archive: %w", err)
	}
	return list, nil
}

// writeMetadata writes the list of files, with the directories in which they
// are, by their names.
func writeMetadata(w io.Writer, files []*zip.File) error {
	z := gzip.NewWriter(w)
	b := bufio.NewWriter(z)
	for _, text := range []string{metadataVersion, "{}"} {
		if err := writeText(b, []byte(text)); err != nil {
			return err
		}
	}
	entries := map[string]*zip.File{}
	for _, f := range files {
		if strings.HasPrefix(f.Name, "/") || slices.Contains(strings.Split(f.Name, "/"), "..") {
			continue // it would lie outside
		}
		entries[f.Name] = f
		for dir := path.Dir(strings.TrimSuffix(f.Name, "/")); dir != "."; dir = path.Dir(dir) {
			if _, there := entries[dir+"/"]; there {
				break
			}
			entries[dir+"/"] = nil
		}
	}
	names := make([]string, 0, len(entries))
	for name := range entries {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		facts, err := json.Marshal(factsOf(entries[name]))
		if err != nil {
			return err
		}
		for _, text := range [][]byte{[]byte(name), facts} {
			if err := writeText(b, text); err != nil {
				return err
			}
		}
	}
	return errors.Join(b.Flush(), z.Close())
}

// factsOf are those of a file; nil is a directory that the archive implies.
func factsOf(f *zip.File) entryFacts {
	if f == nil {
		return entryFacts{Mode: "40755"}
	}
	return entryFacts{
		Modified: f.Modified.Unix(), Mode: strconv.FormatUint(uint64(f.ExternalAttrs>>16), 8), CRC: f.CRC32,
		Size: f.UncompressedSize64, Zipped: f.CompressedSize64,
	}
}

func writeText(w io.Writer, text []byte) error {
	var size [4]byte
	binary.BigEndian.PutUint32(size[:], uint32(len(text)))
	if _, err := w.Write(size[:]); err != nil {
		return err
	}
	_, err := w.Write(text)
	return err
}
