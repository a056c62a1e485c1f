# The codec as a product: a shared library that exports the functions of l3/l3.h alone, with a CMake package and a pkg-config file.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

add_library(l3 SHARED $<TARGET_OBJECTS:l3_core>)
target_include_directories(l3 INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_options(l3 PRIVATE -Wl,--no-undefined)
set_target_properties(l3 PROPERTIES LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/l3)
install(TARGETS l3 EXPORT l3Targets LIBRARY COMPONENT library)
install(FILES ${PROJECT_SOURCE_DIR}/csrc/l3/include/l3/l3.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/l3 COMPONENT library)
install(EXPORT l3Targets FILE l3Config.cmake NAMESPACE l3:: DESTINATION ${package} COMPONENT library)
write_basic_package_version_file(l3ConfigVersion.cmake COMPATIBILITY SameMinorVersion)
configure_file(${PROJECT_SOURCE_DIR}/cmake/l3.pc.in l3.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/l3ConfigVersion.cmake DESTINATION ${package} COMPONENT library)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/l3.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)
