// Kubecheck reads Kubernetes manifests as a strict API server does: no field that is not there, none twice, each of its type. It
// is a module of its own, so that nothing else has Kubernetes in its module graph.
package main

import (
	"bytes"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// kinds are those that deploy/kubernetes has.
var kinds = map[string]func() any{
	"v1 Service":                    func() any { return new(corev1.Service) },
	"apps/v1 Deployment":            func() any { return new(appsv1.Deployment) },
	"apps/v1 StatefulSet":           func() any { return new(appsv1.StatefulSet) },
	"batch/v1 Job":                  func() any { return new(batchv1.Job) },
	"policy/v1 PodDisruptionBudget": func() any { return new(policyv1.PodDisruptionBudget) },
}

func main() {
	wrong := len(os.Args) < 2
	for _, file := range os.Args[1:] {
		text, err := os.ReadFile(file)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		for n, document := range bytes.Split(text, []byte("\n---\n")) {
			if err := read(document); err != nil {
				fmt.Fprintf(os.Stderr, "%s, document %d: %v\n", file, n+1, err)
				wrong = true
			}
		}
	}
	if wrong {
		os.Exit(1)
	}
}

// read decodes one document.
func read(document []byte) error {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := yaml.Unmarshal(document, &head); err != nil {
		return err
	}
	kind, ok := kinds[head.APIVersion+" "+head.Kind]
	if !ok {
		return fmt.Errorf("there is no %q here: add it to kinds", head.APIVersion+" "+head.Kind)
	}
	object := kind()
	if err := yaml.UnmarshalStrict(document, object); err != nil {
		return err
	}
	return judge(object)
}

// judge says what an API server would refuse, or we would regret, though every field is known.
func judge(object any) error {
	var pod corev1.PodTemplateSpec
	switch o := object.(type) {
	case *appsv1.Deployment:
		pod = o.Spec.Template
		if fmt.Sprint(o.Spec.Selector.MatchLabels) != fmt.Sprint(pod.Labels) {
			return fmt.Errorf("the selector does not name the labels of the pod")
		}
	case *appsv1.StatefulSet:
		pod = o.Spec.Template
		if fmt.Sprint(o.Spec.Selector.MatchLabels) != fmt.Sprint(pod.Labels) {
			return fmt.Errorf("the selector does not name the labels of the pod")
		}
		if grace := pod.Spec.TerminationGracePeriodSeconds; grace == nil || *grace <= 30 {
			return fmt.Errorf("the grace is not longer than Options.Drain, 30 seconds")
		}
	case *batchv1.Job:
		pod = o.Spec.Template
	default:
		return nil
	}
	if s := pod.Spec.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot {
		return fmt.Errorf("the pod may run as root")
	}
	for _, c := range pod.Spec.Containers {
		if c.Image == "" || len(c.Resources.Requests) == 0 || c.SecurityContext == nil {
			return fmt.Errorf("container %s lacks an image, requests or a security context", c.Name)
		}
		if _, once := object.(*batchv1.Job); !once && (c.ReadinessProbe == nil || c.LivenessProbe == nil) {
			return fmt.Errorf("container %s lacks a probe", c.Name)
		}
	}
	return nil
}
