// Objects in buckets, which Python reads.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <memory>

#include "loader/input/storage.h"

namespace dali_l3::python {

/**
 * Where files are: in file systems and, by `objects`, in buckets. That is a Python object, which must outlive this,
 * with
 *
 *     size(uri) -> int
 *     read(uri, offset, size) -> bytes
 *     objects_in(folder) -> list of (path, size)
 *
 * as loader::ObjectStore has size, read and list; threads call it. FileNotFoundError, PermissionError and
 * errors.StorageError tell what became of a request. None: URIs are refused.
 *
 * @param interrupted if given and set, requests end soon; it must outlive this, too
 */
std::shared_ptr<loader::Storage> storage_of(const pybind11::object &objects,
                                            const std::atomic<bool> *interrupted = nullptr);

}  // namespace dali_l3::python
