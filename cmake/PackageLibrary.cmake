# The codec, the decoder for CUDA devices, the readers' engine and the regions, once for all that the Python package holds:
# its module, the adapters to DALI and the extension of nvImageCodec link to it. Its name and its symbols carry the exact
# version, so that none of them runs with the library of another (docs/architecture.md).
configure_file(${PROJECT_SOURCE_DIR}/cmake/package_library.map.in package_library.map @ONLY)
set(exports ${PROJECT_BINARY_DIR}/package_library.map)
set(objects $<TARGET_OBJECTS:l3_core> $<TARGET_OBJECTS:dali_l3_loader> $<TARGET_OBJECTS:dali_l3_roi>)
if(DALI_L3_CUDA)
  list(APPEND objects $<TARGET_OBJECTS:l3_cuda>)
  set(language CUDA) # with its runtime, which is linked in
else()
  list(APPEND objects ${PROJECT_SOURCE_DIR}/csrc/l3/cuda/absent.cc)
  set(language CXX)
endif()

add_library(dali_l3_library SHARED ${objects})
add_library(dali_l3::library ALIAS dali_l3_library)
find_package(Threads REQUIRED)
target_link_libraries(dali_l3_library PRIVATE Threads::Threads)
target_include_directories(dali_l3_library PRIVATE ${PROJECT_SOURCE_DIR}/csrc/l3 ${PROJECT_SOURCE_DIR}/csrc/l3/include
  INTERFACE ${PROJECT_SOURCE_DIR}/csrc/l3/include ${PROJECT_SOURCE_DIR}/csrc ${PROJECT_SOURCE_DIR}/csrc/loader)
target_link_options(dali_l3_library PRIVATE -Wl,--no-undefined -Wl,--version-script=${exports})
set_target_properties(dali_l3_library PROPERTIES OUTPUT_NAME dali_l3 SOVERSION ${PROJECT_VERSION}
  LINKER_LANGUAGE ${language} CUDA_RUNTIME_LIBRARY Static LINK_DEPENDS ${exports})
install(TARGETS dali_l3_library LIBRARY DESTINATION dali_l3 COMPONENT python NAMELINK_SKIP)
