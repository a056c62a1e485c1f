# Finds the folders of installed Python packages.
include_guard(GLOBAL)
find_package(Python REQUIRED COMPONENTS Interpreter)

# Sets ${variable} to the folder of a Python package, or to nothing. The package is not imported: importing DALI takes seconds and may fail
# on a build machine. Further arguments are options of the interpreter.
function(find_python_package package variable)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" ${ARGN} -c "
import importlib.util
try:
    spec = importlib.util.find_spec('${package}')
except ModuleNotFoundError:  # its parent is missing
    spec = None
print(next(iter(spec.submodule_search_locations)) if spec else '', end='')"
    OUTPUT_VARIABLE folder COMMAND_ERROR_IS_FATAL ANY)
  set(${variable} "${folder}" PARENT_SCOPE)
endfunction()
