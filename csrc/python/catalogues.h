// Catalogues' files, as the readers see them.
#pragma once

#include <pybind11/pybind11.h>

namespace dali_l3::python {

/** Adds the functions and the class to a module. */
void define_catalogues(pybind11::module_ &module);

}  // namespace dali_l3::python
