// Archives and their indices, as the readers see them.
#pragma once

#include <pybind11/pybind11.h>

namespace dali_l3::python {

/** Adds the functions to a module. */
void define_archives(pybind11::module_ &module);

}  // namespace dali_l3::python
