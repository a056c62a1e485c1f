// A catalogue as a file, which readers map: docs/catalogue.md has the format.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "dataset/catalogue.h"

namespace dali_l3::loader {

/** What a reader of a catalogue delivers. */
struct CatalogueFacts {
  uint64_t samples = 0;
  int companions = 0;
  bool has_labels = true;  ///< whether labels are an output
  int label_columns = 0;   ///< numbers of a label; 0: labels are integers

  bool operator==(const CatalogueFacts &) const = default;
};

/** A catalogue's file, opened. */
struct CatalogueFile {
  CatalogueFacts facts;
  Catalogue catalogue;  ///< its columns are those of the file
  std::string origin;   ///< what it was made from, as whoever made it has put it
};

/** The facts of a file, of which only header and table are read. @throws std::runtime_error as open_catalogue() */
CatalogueFacts read_catalogue_facts(const std::string &path);

/**
 * Maps a catalogue. Header and table of sections are checked, and that each section has the size that it must have.
 * What is in the sections is checked when it is used.
 *
 * @throws std::runtime_error, naming the file, if it cannot be opened, is none, is damaged or of another version
 */
CatalogueFile open_catalogue(const std::string &path);

/** The same, of bytes that `keeper` keeps. */
CatalogueFile parse_catalogue(const std::string &path, std::span<const uint8_t> bytes,
                              std::shared_ptr<const void> keeper);

/** Compares the checksums of all sections. @throws std::runtime_error, naming the file, if one is wrong */
void check_sections(const std::string &path);

/**
 * Refuses what no catalogue can hold, before anybody looks at the files of a dataset.
 *
 * @param label_columns numbers of a label
 * @throws FileError, naming the file
 */
void check_can_hold(const std::string &path, uint64_t samples, uint64_t companions, uint64_t label_columns);

/**
 * Writes a catalogue with sizes and formats, which appears when it is whole.
 *
 * @param origin any text
 * @param root where its readers find the files, such as a URI, if not in the catalogue's root
 * @throws std::runtime_error if an archive cannot be opened, or FileError if the file cannot be written, or not hold
 * the dataset
 */
void save_catalogue(const Catalogue &catalogue, bool has_labels, const std::string &origin, const std::string &path,
                    const std::optional<std::string> &root = {}, const Storage &storage = *Storage::local());

}  // namespace dali_l3::loader
