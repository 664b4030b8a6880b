#!/bin/sh
# Writes the message classes of wire.proto (wire_pb2.py, wire_pb2.pyi) into the folder named as the one argument.
#   PYTHON=.venv/bin/python coordinator/hostler_coordinator/etcd/generate.sh coordinator/hostler_coordinator/etcd/pb
set -eu
[ $# -eq 1 ] || { echo "usage: $0 OUTPUT_FOLDER" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The virtual path gives the descriptor a name that no other package's proto can have, and the module its import path.
"${PYTHON:-python3}" -m grpc_tools.protoc \
    "--proto_path=hostler_coordinator/etcd/pb=$here" \
    "--python_out=$work" "--pyi_out=$work" \
    hostler_coordinator/etcd/pb/wire.proto
mkdir -p "$1"
cp "$work/hostler_coordinator/etcd/pb/wire_pb2.py" "$work/hostler_coordinator/etcd/pb/wire_pb2.pyi" "$1/"
