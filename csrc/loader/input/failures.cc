#include "input/failures.h"

#include <utility>

namespace dali_l3::loader {

Failure kind_of_failure(std::string_view message) {
  using enum Failure;
  // Names of S3 (docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html), and in brackets the status codes of
  // google-cloud-cpp.
  static constexpr std::pair<std::string_view, Failure> kCodes[] = {
      {"NoSuchKey", missing},
      {"NoSuchBucket", missing},
      {"NoSuchVersion", missing},
      {"[NOT_FOUND]", missing},
      {"AccessDenied", forbidden},
      {"AccountProblem", forbidden},
      {"AllAccessDisabled", forbidden},
      {"ExpiredToken", forbidden},
      {"InvalidAccessKeyId", forbidden},
      {"InvalidSecurity", forbidden},
      {"InvalidToken", forbidden},
      {"MissingAuthenticationToken", forbidden},
      {"NotSignedUp", forbidden},
      {"SignatureDoesNotMatch", forbidden},
      {"[PERMISSION_DENIED]", forbidden},
      {"[UNAUTHENTICATED]", forbidden},
      {"AuthorizationHeaderMalformed", permanent},
      {"IllegalLocationConstraint", permanent},
      {"InvalidArgument", permanent},
      {"InvalidBucketName", permanent},
      {"InvalidObjectState", permanent},
      {"InvalidRange", permanent},
      {"InvalidRequest", permanent},
      {"InvalidURI", permanent},
      {"KeyTooLong", permanent},
      {"MethodNotAllowed", permanent},
      {"NotImplemented", permanent},
      {"PermanentRedirect", permanent},
      {"is not a valid URI", permanent},
      {"[FAILED_PRECONDITION]", permanent},
      {"[INVALID_ARGUMENT]", permanent},
      {"[OUT_OF_RANGE]", permanent},
      {"[UNIMPLEMENTED]", permanent},
  };
  for (const auto &[code, failure] : kCodes)
    if (message.find(code) != std::string_view::npos) return failure;
  return passing;
}

}  // namespace dali_l3::loader
