#include "dataset/archive_listing.h"

#include <algorithm>
#include <cctype>
#include <deque>
#include <future>
#include <map>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "archives/archive_paths.h"
#include "archives/indexing.h"
#include "dataset/catalogue.h"
#include "dataset/counted.h"
#include "input/read_pool.h"

namespace dali_l3::loader {
namespace {

// Extensions that an error shows.
constexpr size_t kShown = 20;

void check(const ArchiveOptions &options) {
  const auto require = [](bool condition, const char *message) {
    if (!condition) throw std::runtime_error(message);
  };
  const std::string &missing = options.missing_component_behavior;
  require(!options.paths.empty(), "The argument paths is an empty list");
  require(!options.ext.empty(),
          "The argument paths needs the argument ext: the extensions of the image and of what "
          "else is wanted of each sample, such as [\"jpg;png\", \"mask.png\"]");
  if (missing != kMissingIsEmpty && missing != kMissingIsSkipped && missing != kMissingIsBad)
    throw std::runtime_error("missing_component_behavior is \"" + missing +
                             R"(", but must be "empty", "skip" or "error")");
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char &c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

// A set of extensions.
class Extensions {
 public:
  Extensions(const char *argument, const std::string &alternatives, bool case_sensitive)
      : case_sensitive_(case_sensitive) {
    for (size_t begin = 0; begin <= alternatives.size();) {
      const size_t end = std::min(alternatives.find(';', begin), alternatives.size());
      std::string_view extension = std::string_view(alternatives).substr(begin, end - begin);
      if (extension.starts_with('.')) extension.remove_prefix(1);
      if (extension.empty())
        throw std::runtime_error(std::string("The argument ") + argument + " has an empty extension in \"" +
                                 alternatives + '"');
      all_.push_back(case_sensitive ? std::string(extension) : lower(extension));
      begin = end + 1;
    }
  }

  bool contain(std::string_view extension) const {
    return std::ranges::find(all_, case_sensitive_ ? std::string(extension) : lower(extension)) != all_.end();
  }

 private:
  std::vector<std::string> all_;
  bool case_sensitive_;
};

// What the samples of an archive are asked for.
struct Wanted {
  std::vector<Extensions> components;
  std::optional<Extensions> label;

  explicit Wanted(const ArchiveOptions &options) {
    for (const std::string &ext : options.ext) components.emplace_back("ext", ext, options.case_sensitive_extensions);
    if (options.label_ext) label.emplace("label_ext", *options.label_ext, options.case_sensitive_extensions);
  }
};

// The folder that paths have in common, up to its slash; of one path its own folder.
std::string common_folder(const std::vector<std::string> &paths) {
  std::string_view common = paths.front();
  for (const std::string &path : paths)
    common = common.substr(0, std::ranges::mismatch(common, path).in1 - common.begin());
  return std::string(common.substr(0, common.rfind('/') + 1));
}

// The indices of archives, which threads find some archives ahead: there are no more in memory.
class Indices {
 public:
  Indices(const std::vector<std::string> &archives, const ArchiveOptions &options, int threads,
          const std::atomic<bool> *cancelled, const Storage &storage)
      : archives_(archives),
        cancelled_(cancelled),
        storage_(storage),
        ahead_(4 * static_cast<size_t>(threads)),
        pool_(threads) {
    if (!options.index_paths) return;
    index_paths_ = expand_paths("index_paths", *options.index_paths, storage);
    if (index_paths_.size() != archives.size())
      throw std::runtime_error("The argument index_paths has " + counted(index_paths_.size(), "path") +
                               ", the argument paths " + std::to_string(archives.size()));
  }

  // That of the next archive.
  FoundIndex next() {
    for (; begun_ < archives_.size() && jobs_.size() < ahead_; begun_++)
      jobs_.push_back(pool_.submit([this, i = begun_] { return find(i); }));
    std::future<FoundIndex> job = std::move(jobs_.front());
    jobs_.pop_front();
    return job.get();
  }

 private:
  FoundIndex find(size_t i) const {
    return index_paths_.empty() ? find_index(archives_[i], cancelled_, storage_)
                                : FoundIndex{read_index(index_paths_[i], archives_[i], storage_)};
  }

  const std::vector<std::string> &archives_;
  const std::atomic<bool> *const cancelled_;
  const Storage &storage_;
  const size_t ahead_;
  std::vector<std::string> index_paths_;
  size_t begun_ = 0;
  std::deque<std::future<FoundIndex>> jobs_;
  ReadPool pool_;  // last: its threads use all of the above
};

// Adds the samples of an archive to a listing.
class Adder {
 public:
  Adder(const ArchiveOptions &options, ArchiveListing &listing)
      : skips_(options.missing_component_behavior == kMissingIsSkipped), wanted_(options), listing_(listing) {}

  void add(uint32_t archive, ArchiveIndex &index) {
    archive_ = archive;
    for (size_t i = 0; i < index.samples(); i++)
      add(std::span(index.members).subspan(index.begins[i], index.begins[i + 1] - index.begins[i]));
  }

  // Where no sample has what is wanted: which extensions there are instead.
  std::string extensions_seen() const {
    std::string text;
    size_t count = 0;
    for (const auto &[extension, samples] : seen_) {
      if (count++ == kShown) return text + ", …";
      text += (text.empty() ? "" : ", ") + extension;
    }
    return text;
  }

 private:
  void add(std::span<const TarMember> members) {
    Entry entry;
    entry.file = component(members, wanted_.components[0]);
    bool complete = entry.file.offset != 0;
    for (size_t c = 1; c < wanted_.components.size(); c++) {
      entry.companions.push_back(component(members, wanted_.components[c]));
      complete &= entry.companions.back().offset != 0;
    }
    File label;
    if (wanted_.label) {
      label = component(members, *wanted_.label);
      complete &= label.offset != 0;
    }
    if (!complete && seen_.size() <= kShown)
      for (const TarMember &member : members) seen_[std::string(extension_of(member.name))]++;
    if (skips_ && !complete) return;
    if (entry.file.offset == 0) entry.file.path = key_of(members.front().name);  // its error needs a name
    entry.label = static_cast<int>(listing_.entries.size());
    if (wanted_.label) listing_.label_files.push_back(std::move(label));
    listing_.entries.push_back(entry);
  }

  File component(std::span<const TarMember> members, const Extensions &extensions) const {
    for (const TarMember &member : members)
      if (extensions.contain(extension_of(member.name))) return {member.name, member.size, member.offset, archive_};
    return {.archive = archive_};
  }

  const bool skips_;
  const Wanted wanted_;
  ArchiveListing &listing_;
  uint32_t archive_ = 0;
  std::map<std::string, int64_t> seen_;  // in samples that lack a component
};

}  // namespace

ArchiveListing list_archives(const ArchiveOptions &options, int threads, const std::atomic<bool> *cancelled,
                             const Storage &storage) {
  check(options);
  ArchiveListing listing;
  Adder adder(options, listing);
  const std::vector<std::string> archives = expand_paths("paths", options.paths, storage);
  Indices indices(archives, options, threads, cancelled, storage);

  const std::string folder = common_folder(archives);
  listing.root = folder;
  for (uint32_t i = 0; i < archives.size(); i++) {
    listing.archives.push_back(archives[i].substr(folder.size()));
    FoundIndex found = indices.next();
    if (const size_t repeated = repeated_keys(found.index); repeated > 0)
      listing.problems.push_back(archives[i] + ": " + counted(repeated, "sample") + (repeated == 1 ? " has" : " have") +
                                 " the name of another: each counts as a sample of its own");
    if (!found.problem.empty())
      listing.problems.push_back(archives[i] +
                                 ": its index could not be saved, so it is made each time: " + found.problem);
    adder.add(i, found.index);
  }
  if (listing.entries.empty())
    throw std::runtime_error(
        "No samples found in " + counted(archives.size(), "archive") +
        " that have all that ext and label_ext ask for. Extensions there: " + adder.extensions_seen());
  return listing;
}

}  // namespace dali_l3::loader
