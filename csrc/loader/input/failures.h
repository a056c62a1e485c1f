// What the words of a storage service mean.
#pragma once

#include <string_view>

namespace dali_l3::loader {

enum class Failure {
  passing,     ///< it may go well the next time
  missing,     ///< there is no such object or bucket
  forbidden,   ///< not with these credentials
  locked_out,  ///< the credentials themselves are refused, whatever the object
  permanent,   ///< for any other reason that does not go away
};

/** By the error codes of S3 and Google Cloud Storage in a message. What nobody has told to be permanent may pass. */
Failure kind_of_failure(std::string_view message);

}  // namespace dali_l3::loader
