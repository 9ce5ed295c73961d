// Command manifests checks the Kubernetes manifests of a directory: each file must
// decode into the types of the public API without a field that they do not have, and
// the kustomization must name all of them.
//
// usage: go -C deploy/kubernetes/testdata run . ..
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	kustomize "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: manifests DIRECTORY")
		os.Exit(2)
	}
	if err := check(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "manifests:", err)
		os.Exit(1)
	}
}

func check(dir string) error {
	scheme := runtime.NewScheme()
	if err := apps.AddToScheme(scheme); err != nil {
		return err
	}
	if err := core.AddToScheme(scheme); err != nil {
		return err
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return err
	}
	var found, images []string
	var all kustomize.Kustomization
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name := filepath.Base(file)
		if name == "kustomization.yaml" {
			if err := yaml.UnmarshalStrict(text, &all); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			continue
		}
		object, _, err := decoder.Decode(text, nil, nil)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if set, ok := object.(*apps.StatefulSet); ok {
			for _, c := range set.Spec.Template.Spec.Containers {
				images = append(images, c.Image)
			}
			if fmt.Sprint(set.Spec.Selector.MatchLabels) != fmt.Sprint(set.Spec.Template.Labels) {
				return fmt.Errorf("%s: the selector does not match the labels of the pods", name)
			}
		}
		found = append(found, name)
	}
	slices.Sort(all.Resources)
	if !slices.Equal(all.Resources, found) || len(found) == 0 {
		return fmt.Errorf("the kustomization names %v, the directory has %v", all.Resources, found)
	}
	for _, i := range all.Images {
		if !slices.Contains(images, i.Name) {
			return fmt.Errorf("the kustomization replaces the image %s, which no container has", i.Name)
		}
	}
	return nil
}
