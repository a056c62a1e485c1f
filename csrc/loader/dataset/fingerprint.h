// Whether two catalogues list the same samples, told by a few numbers.
#pragma once

#include "dataset/catalogue.h"
#include "settings.h"

namespace dali_l3::loader {

/** The setting of a fingerprint that is a number of files; the others are checksums. */
inline constexpr const char *kFiles = "files";

/**
 * How many samples there are, and CRC-32 checksums of all their names and labels, in their order, and on request of
 * their formats, and of how much memory they and their companions take up.
 */
Settings fingerprint(const Catalogue &catalogue, bool formats, bool sizes);

}  // namespace dali_l3::loader
