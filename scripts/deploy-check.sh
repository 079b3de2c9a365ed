#!/bin/sh
# Reads every file of deploy/ and the Dockerfile as what will use it does:
#
#   the units               systemd-analyze verify, and its verdict on what they leave open
#   compose.yml             docker-compose config
#   Prometheus              promtool check config, with the alert rules of amendsprom
#   Kubernetes              internal/kubecheck: the strict decoding of k8s.io/api
#   the Dockerfile          dockerfile-utils for what the words mean, dockerfilelint for what is wise
#   Grafana's provisioning  docker-compose's reader of YAML: that it is YAML, no more
#
# Nothing is started. What is missing is installed with apt-get where we are root; where a program cannot be had the script
# says which package has it, and fails.
set -eu
cd "$(dirname "$0")/.."

DOCKERFILELINT=1.8.0
DOCKERFILE_UTILS=0.16.3

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

# need PROGRAM PACKAGE: the program is there, or is installed.
need() {
	command -v "$1" >/dev/null && return
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		export DEBIAN_FRONTEND=noninteractive
		apt-get install -y -q --no-install-recommends "$2" >/dev/null ||
			{ apt-get update -q && apt-get install -y -q --no-install-recommends "$2"; } >/dev/null
	fi
	command -v "$1" >/dev/null || { echo "deploy-check needs $1: install the package $2" >&2 && exit 1; }
}

# have_promtool finds promtool, or takes it out of Debian's package: to install that would start a Prometheus.
have_promtool() {
	promtool=$(command -v promtool) && return
	promtool=$PWD/bin/promtool
	[ -x "$promtool" ] && return
	mkdir -p bin
	if command -v apt-get >/dev/null; then
		(cd "$work" && { apt-get download -q prometheus || { apt-get update -q && apt-get download -q prometheus; }; } >/dev/null 2>&1 &&
			dpkg-deb -x prometheus_*.deb prometheus) && cp "$work/prometheus/usr/bin/promtool" "$promtool"
	fi
	[ -x "$promtool" ] || { echo "deploy-check needs promtool: install the package prometheus" >&2 && exit 1; }
}

units() {
	need systemd-analyze systemd
	# The programs stand where the units look for them on the machine that they are for: here any program does.
	for unit in deploy/systemd/*.service; do
		sed -e 's|^ExecStart=/usr/local/bin/[a-z]*|ExecStart=/bin/true|' -e '/^EnvironmentFile=/d' "$unit" >"$work/${unit##*/}"
	done
	systemd-analyze verify --man=no "$work"/*.service 2>"$work/said" || { cat "$work/said" >&2 && return 1; }
	if grep -F "$work" "$work/said" >&2; then return 1; fi # a name that it does not know is a warning; of other units it warns, too
	for unit in "$work"/*.service; do
		systemd-analyze security --offline=true --threshold=20 "$unit" >"$work/said" || { cat "$work/said" >&2 && return 1; }
		tail -n 1 "$work/said"
	done
	# What the example of the settings names is what the programs read.
	sed -n 's/^\([A-Z_]*\)=.*/\1/p' deploy/systemd/service.env | while read -r name; do
		[ "$name" = AMENDS_DB ] || grep -q "\"$name\"" examples/service/main.go || { echo "the service reads no $name" >&2 && exit 1; }
	done
}

compose() {
	need docker-compose docker-compose
	POSTGRES_PASSWORD=x docker-compose -f deploy/compose/compose.yml config >"$work/compose"
	# Every file that is mounted from here is here, but the one that compose.yml says how to make.
	sed -n 's|^ *- \(\.[^:]*\):.*|\1|p' deploy/compose/compose.yml | while read -r file; do
		[ "$file" = ./prometheus-token ] || [ -e "deploy/compose/$file" ] || { echo "compose.yml mounts $file, which is not there" >&2 && exit 1; }
	done
	# Python's reader of YAML is what docker-compose has.
	python3 -c 'import yaml' 2>/dev/null || { echo "deploy-check needs Python's reader of YAML: install the package python3-yaml" >&2 && return 1; }
	python3 -c 'import sys, yaml
for name in sys.argv[1:]: yaml.safe_load(open(name))' deploy/compose/grafana/*/*.yml
}

prometheus() {
	have_promtool
	cp deploy/compose/prometheus.yml amendsprom/rules.yml "$work"
	echo token >"$work/token"
	"$promtool" check config "$work/prometheus.yml"
}

kubernetes() { (cd internal/kubecheck && GOWORK=off go run . ../../deploy/kubernetes/*.yml); }

dockerfile() {
	need npm npm
	npm install --silent --no-save --no-audit --no-fund --ignore-scripts --prefix "$work" \
		dockerfilelint@$DOCKERFILELINT dockerfile-utils@$DOCKERFILE_UTILS
	"$work/node_modules/.bin/dockerfile-utils" lint Dockerfile
	"$work/node_modules/.bin/dockerfilelint" Dockerfile
}

for part in dockerfile units compose prometheus kubernetes; do
	echo "deploy-check: $part"
	$part
done
echo "deploy-check: every file of deploy/ and the Dockerfile is understood"
