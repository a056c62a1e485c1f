# Finds DALI and nvImageCodec, where pip installed them, and the headers of the CUDA runtime, which theirs include.
#
#   DALI_DIR        the folder nvidia/dali of a DALI; by default that of the installed one
#   MORE_DALI_DIRS  those of others that there shall be adapters for, too
#   NVIMGCODEC_DIR  the folder nvidia/nvimgcodec; by default that of the installed one. The extension works with
#                   this version and later ones, up to 0.9
#
# The CUDA headers come from a toolkit on the system or else from the PyPI packages nvidia-cuda-runtime, nvidia-cuda-crt and
# nvidia-cuda-cccl.
#
# Defines
#   DALI_DIRS, CUDA_HEADERS  lists of folders
#   dali::dali               DALI's headers and libraries, of DALI_DIR
#   dali::nvimgcodec         nvImageCodec's headers; its extensions link against nothing
include_guard(GLOBAL)
include(PythonPackage)

foreach(package dali nvimgcodec)
  string(TOUPPER ${package}_DIR folder)
  if(NOT ${folder})
    # In an isolated build by pip, first the user's environment, whose DALI the package is to work with.
    find_python_package(nvidia.${package} ${folder} -I)
    if(NOT ${folder})
      find_python_package(nvidia.${package} ${folder})
    endif()
  endif()
endforeach()
if(NOT DALI_DIR OR NOT NVIMGCODEC_DIR)
  message(FATAL_ERROR
    "${Python_EXECUTABLE} has no DALI. Install one, set DALI_DIR and NVIMGCODEC_DIR, or build without: -DDALI_L3_DALI=OFF")
endif()
set(DALI_DIRS ${DALI_DIR} ${MORE_DALI_DIRS})

function(dali_version folder variable)
  file(STRINGS ${folder}/__init__.py found REGEX "^__version__ = ")
  string(REGEX REPLACE "^__version__ = '(.*)'$" "\\1" found "${found}")
  set(${variable} "${found}" PARENT_SCOPE)
endfunction()
foreach(folder ${DALI_DIRS})
  dali_version(${folder} version)
  message(STATUS "DALI ${version}: ${folder}")
endforeach()

find_package(CUDAToolkit QUIET)
if(CUDAToolkit_FOUND)
  set(CUDA_HEADERS ${CUDAToolkit_INCLUDE_DIRS})
else()
  find_python_package(nvidia.cu13 CU13_DIR)
  set(CUDA_HEADERS ${CU13_DIR}/include)
  if(NOT EXISTS ${CU13_DIR}/include/cuda_runtime_api.h)
    message(FATAL_ERROR
      "DALI's headers need those of the CUDA runtime. Install a CUDA toolkit, or the PyPI packages nvidia-cuda-runtime, nvidia-cuda-crt "
      "and nvidia-cuda-cccl, or build without DALI: -DDALI_L3_DALI=OFF")
  endif()
endif()

# DALI's own libraries are loaded before any plugin and found again by their SONAMEs: plugins carry no path to them.
add_library(dali::dali INTERFACE IMPORTED GLOBAL)
target_include_directories(dali::dali SYSTEM INTERFACE ${DALI_DIR}/include ${CUDA_HEADERS})
target_link_libraries(dali::dali INTERFACE ${DALI_DIR}/libdali.so ${DALI_DIR}/libdali_core.so)

add_library(dali::nvimgcodec INTERFACE IMPORTED GLOBAL)
target_include_directories(dali::nvimgcodec SYSTEM INTERFACE ${NVIMGCODEC_DIR}/include ${CUDA_HEADERS})
