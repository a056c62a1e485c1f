# Finds DALI and nvImageCodec where pip installed them, and the headers of the CUDA runtime, which theirs include.
#
# The CUDA headers come from a toolkit on the system or else from the PyPI packages nvidia-cuda-runtime, nvidia-cuda-crt and
# nvidia-cuda-cccl.
#
# Defines the targets
#   dali::dali        DALI's headers and libraries
#   dali::nvimgcodec  nvImageCodec's headers; its extensions link against nothing
include_guard(GLOBAL)
include(PythonPackage)

find_python_package(nvidia.dali DALI_DIR)
find_python_package(nvidia.nvimgcodec NVIMGCODEC_DIR)
if(NOT DALI_DIR OR NOT NVIMGCODEC_DIR)
  message(FATAL_ERROR
    "${Python_EXECUTABLE} has no DALI. Install the version that pyproject.toml names, or build without: -DDALI_L3_DALI=OFF")
endif()
message(STATUS "DALI: ${DALI_DIR}")

find_package(CUDAToolkit QUIET)
if(CUDAToolkit_FOUND)
  set(cuda_include_dirs ${CUDAToolkit_INCLUDE_DIRS})
else()
  find_python_package(nvidia.cu13 CU13_DIR)
  set(cuda_include_dirs ${CU13_DIR}/include)
  if(NOT EXISTS ${CU13_DIR}/include/cuda_runtime_api.h)
    message(FATAL_ERROR
      "DALI's headers need those of the CUDA runtime. Install a CUDA toolkit, or the PyPI packages nvidia-cuda-runtime, nvidia-cuda-crt "
      "and nvidia-cuda-cccl, or build without DALI: -DDALI_L3_DALI=OFF")
  endif()
endif()

# DALI's own libraries are loaded before any plugin and found again by their SONAMEs: plugins carry no path to them.
add_library(dali::dali INTERFACE IMPORTED GLOBAL)
target_include_directories(dali::dali SYSTEM INTERFACE ${DALI_DIR}/include ${cuda_include_dirs})
target_link_libraries(dali::dali INTERFACE ${DALI_DIR}/libdali.so ${DALI_DIR}/libdali_core.so)

add_library(dali::nvimgcodec INTERFACE IMPORTED GLOBAL)
target_include_directories(dali::nvimgcodec SYSTEM INTERFACE ${NVIMGCODEC_DIR}/include ${cuda_include_dirs})
