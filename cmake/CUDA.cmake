# Enables the CUDA language, with a toolkit on the system or else with the one that the PyPI packages nvidia-cuda-nvcc, nvidia-nvvm,
# nvidia-cuda-crt, nvidia-cuda-runtime and nvidia-cuda-cccl make up.
include_guard(GLOBAL)

# In the places where _build/backend.py looks before it asks for those packages.
if(NOT CMAKE_CUDA_COMPILER)
  if(DEFINED ENV{CUDACXX})
    set(CMAKE_CUDA_COMPILER $ENV{CUDACXX})
  else()
    find_program(SYSTEM_NVCC nvcc HINTS ENV CUDA_PATH ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin)
    mark_as_advanced(SYSTEM_NVCC)
    if(SYSTEM_NVCC)
      set(CMAKE_CUDA_COMPILER ${SYSTEM_NVCC})
    else()
      include(PythonPackage)
      find_python_package(nvidia.cu13 CU13_DIR)
      if(NOT EXISTS ${CU13_DIR}/bin/nvcc)
        if(DALI_L3_CUDA_OPTIONAL) # who includes this looks whether there is a CMAKE_CUDA_COMPILER
          return()
        endif()
        message(FATAL_ERROR
          "There is no nvcc. Install a CUDA toolkit, or the PyPI packages nvidia-cuda-nvcc, nvidia-nvvm, nvidia-cuda-crt, "
          "nvidia-cuda-runtime and nvidia-cuda-cccl, or build without: -DDALI_L3_CUDA=OFF")
      endif()
      set(CMAKE_CUDA_COMPILER ${CU13_DIR}/bin/nvcc)
      string(APPEND CMAKE_CUDA_FLAGS " -L${CU13_DIR}/lib") # nvcc.profile says lib64
    endif()
  endif()
endif()

# Machine code for the architectures in use, as far as this nvcc knows them, and for later ones what the driver can compile.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
  execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --list-gpu-arch OUTPUT_VARIABLE known COMMAND_ERROR_IS_FATAL ANY)
  set(architectures 75 80 86 89 90 100 120)
  string(REGEX MATCHALL "[0-9]+" known "${known}")
  list(JOIN known "|" known)
  list(FILTER architectures INCLUDE REGEX "^(${known})$")
  list(POP_BACK architectures latest)
  list(TRANSFORM architectures APPEND -real)
  set(CMAKE_CUDA_ARCHITECTURES ${architectures} ${latest})
endif()
enable_language(CUDA)
if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION) # before version 3.26, CMake does not know that nvcc has C++20
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
message(STATUS "CUDA: ${CMAKE_CUDA_COMPILER} for ${CMAKE_CUDA_ARCHITECTURES}")
