#!/usr/bin/env bash
# Makes .deps/cuda a CUDA toolkit (12 or newer) with NCCL and cuDNN for the preset cuda: a link to the system's where there is one,
# otherwise put together from NVIDIA's PyPI packages. Needs no driver and no GPU. Called by debian.sh.
set -euo pipefail

deps=$(cd "$(dirname "$0")/.." && pwd)/.deps
cuda=$deps/cuda
mkdir -p "$deps"

pip_install() {  # TARGET PACKAGE...
  [[ -x $deps/venv/bin/pip ]] || python3 -m venv "$deps/venv"
  "$deps/venv/bin/pip" install -q --no-deps --no-compile --target "$@"
}

# tests/machine_code reads kernels with these programs, which not every toolkit has.
disassembler=$deps/disassembler
[[ -x $disassembler/nvidia/cu13/bin/cuobjdump ]] ||
  pip_install "$disassembler" nvidia-cuda-cuobjdump==13.5.37 nvidia-cuda-nvdisasm==13.5.37

# Wheels carry libx.so.1 alone; the linker asks for libx.so.
add_linker_names() {  # FOLDER
  local library
  for library in "$1"/lib*.so.[0-9]*; do
    ln -sf "$(basename "$library")" "${library%%.so.*}.so"
  done
}

# cuDNN for CUDA $1, in its configuration of engines that are compiled when a plan is made, a fifth of the whole one: attention
# is one of them. The frontend is headers; its wheel has Python's modules as well.
add_cudnn() {  # MAJOR
  local version=1.32.0
  if [[ ! -e $deps/cudnn/lib/libcudnn.so ]]; then
    pip_install "$deps/cudnn-wheel" "nvidia-cudnn-jit-cu$1==9.27.0.42"
    ln -sfn cudnn-wheel/nvidia/cudnn_jit "$deps/cudnn"
    add_linker_names "$deps/cudnn/lib"
  fi
  if [[ ! -d $deps/cudnn-frontend/nvidia_cudnn_frontend-$version.dist-info ]]; then
    rm -rf "$deps/cudnn-frontend"
    pip_install "$deps/cudnn-frontend" "nvidia-cudnn-frontend==$version"
    rm -rf "$deps/cudnn-frontend/cudnn"
  fi
}

if [[ -x $cuda/bin/nvcc ]]; then
  add_cudnn "$("$cuda/bin/nvcc" --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p')"
  exit 0
fi

for nvcc in "$(command -v nvcc || true)" /usr/local/cuda/bin/nvcc; do
  [[ -x $nvcc ]] || continue
  major=$("$nvcc" --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
  ((major >= 12)) || continue
  root=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
  echo "cuda_toolkit.sh: using CUDA $major in $root"
  if [[ ! -f $root/include/nccl.h && ! -f /usr/include/nccl.h ]]; then
    pip_install "$deps/nccl-wheel" "nvidia-nccl-cu$major"
    ln -sfn nccl-wheel/nvidia/nccl "$deps/nccl"
    add_linker_names "$deps/nccl/lib"
  fi
  add_cudnn "$major"
  ln -sfn "$root" "$cuda"
  exit 0
done

echo "cuda_toolkit.sh: no nvcc of CUDA 12 or newer here; assembling CUDA 13.0 in $cuda"
wheels=$deps/cuda-wheels
rm -rf "$wheels"
pip_install "$wheels" nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 \
  nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85 nvidia-cublas==13.1.0.3 nvidia-nccl-cu13==2.28.9 \
  nvidia-cuda-nvrtc==13.0.88
root=$wheels/nvidia/cu13
add_linker_names "$root/lib"
add_linker_names "$wheels/nvidia/nccl/lib"
ln -sfn cuda-wheels/nvidia/nccl "$deps/nccl"
add_cudnn 13
ln -s lib "$root/lib64"
mkdir -p "$root/targets/x86_64-linux" "$root/lib/stubs"
ln -s ../../include ../../lib "$root/targets/x86_64-linux/"

# The driver library comes with a driver. Programs link against this stand-in, which fails every call (error 34: stub).
gcc -E "$root/include/cuda.h" | grep -oE '\bcu[A-Z][A-Za-z0-9_]*\(' | tr -d '(' | sort -u |
  sed 's/.*/int &(void) { return 34; }/' |
  gcc -shared -fPIC -x c - -Wl,-soname,libcuda.so.1 -o "$root/lib/stubs/libcuda.so"
ln -sfn cuda-wheels/nvidia/cu13 "$cuda"
