# k6, built with Go. The hash locks k6, and k6's own go.sum locks all its dependencies.
set -eu
version=v1.8.1
export GOFLAGS=-modcacherw GOBIN="$PWD/bin"
go mod download -json "go.k6.io/k6@$version" | grep -q '"h1:orZsbZ2Od0CVZICs9YpTgkKcxfPghJW8VZtwg0cj8H8="' || {
    echo "go.k6.io/k6@$version: found another hash than expected" >&2
    exit 1
}
go install "go.k6.io/k6@$version"
echo "${version#v}" >version
