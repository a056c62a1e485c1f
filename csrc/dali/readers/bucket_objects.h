// Objects in buckets, through DALI's own access to them.
#pragma once

#include <memory>

#include "loader/input/object_store.h"

namespace dali_l3 {

// Those that DALI's readers find at s3:// and gs://, with the credentials and endpoints that are set up for them.
std::shared_ptr<loader::ObjectStore> BucketObjects();

}  // namespace dali_l3
