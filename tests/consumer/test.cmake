# Installs the library, builds the consumer against it, runs it, and looks at what the library exports.
#
#   cmake -DBUILD=… -DVERSION=… -DNM=… -P test.cmake
set(prefix ${BUILD}/consumer-prefix)
file(REMOVE_RECURSE ${prefix} ${BUILD}/consumer)

function(run)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN}: ${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix} --component library)
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${BUILD}/consumer -DCMAKE_PREFIX_PATH=${prefix} -DWANTED_VERSION=${VERSION})
run(${CMAKE_COMMAND} --build ${BUILD}/consumer)
run(${BUILD}/consumer/consumer)
message("${output}")
if(NOT output MATCHES "^l3 ${VERSION} ")
  message(FATAL_ERROR "the library does not call itself ${VERSION}")
endif()

file(GLOB_RECURSE library ${prefix}/libl3.so)
run(${NM} --dynamic --defined-only --format=posix ${library})
string(REGEX REPLACE "\n$" "" output "${output}")
string(REPLACE "\n" ";" symbols "${output}")
foreach(symbol ${symbols})
  if(NOT symbol MATCHES "^l3_")
    message(FATAL_ERROR "the library exports ${symbol}")
  endif()
endforeach()
