#include "dataset/discovery.h"

#include <dirent.h>
#include <fnmatch.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "dataset/counted.h"
#include "input/uri.h"

namespace dali_l3::loader {
namespace {

struct Item {
  std::string name;
  unsigned char type;  // DT_REG, DT_LNK, …
};

// What a folder holds, by name.
std::vector<Item> list(const std::string &path) {
  const auto fail = [&] {
    throw std::runtime_error(path + " cannot be listed: " + std::generic_category().message(errno));
  };
  const std::unique_ptr<DIR, decltype([](DIR *folder) { closedir(folder); })> folder(opendir(path.c_str()));
  if (!folder) fail();
  std::vector<Item> items;
  for (;;) {
    errno = 0;
    const dirent *entry = readdir(folder.get());
    if (!entry && errno) fail();
    if (!entry) break;
    const std::string name = entry->d_name;
    if (name != "." && name != "..") items.push_back({name, entry->d_type});
  }
  std::sort(items.begin(), items.end(), [](const Item &a, const Item &b) { return a.name < b.name; });
  return items;
}

bool matches(const std::string &name, const std::vector<std::string> &patterns, bool case_sensitive) {
  const int flags = case_sensitive ? 0 : FNM_CASEFOLD;
  const auto matched = [&](const std::string &pattern) { return fnmatch(pattern.c_str(), name.c_str(), flags) == 0; };
  return std::any_of(patterns.begin(), patterns.end(), matched);
}

bool is_folder(const Item &item, const std::string &path) {
  if (item.type != DT_LNK && item.type != DT_UNKNOWN) return item.type == DT_DIR;
  struct stat status;
  if (stat(path.c_str(), &status) != 0)
    throw std::runtime_error(path + (item.type == DT_LNK ? " is a link to nothing" : " cannot be looked at: ") +
                             (item.type == DT_LNK ? "" : std::generic_category().message(errno)));
  return S_ISDIR(status.st_mode);
}

// Whether something in a class folder is a file. A link to nothing counts as one, a link to a folder does not.
bool is_file(const Item &item, const std::string &path, Discovery &found) {
  if (item.type == DT_REG) return true;
  if (item.type != DT_LNK && item.type != DT_UNKNOWN) return false;
  struct stat status;
  if (stat(path.c_str(), &status) != 0) {
    found.problems.push_back(path + " is a link to nothing");
    return true;
  }
  if (item.type == DT_LNK && S_ISDIR(status.st_mode))
    found.problems.push_back(path + " is a link to a folder, and passed over");
  return S_ISREG(status.st_mode);
}

// Things of one kind: how many, and the first.
struct Kind {
  size_t count = 0;
  std::string example;

  void add(const std::string &name) {
    if (count++ == 0) example = name;
  }
  std::string text(const std::string &noun) const { return counted(count, noun) + ", such as " + example + ","; }
};

// The folders and the files in a folder, if it can be read.
struct Content {
  std::vector<std::string> folders, files;
};
Content content_of(const std::string &path) {
  Content content;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    const bool is_folder = entry->is_directory(ignored);
    (is_folder ? content.folders : content.files).push_back(entry->path().filename().string());
  }
  std::sort(content.folders.begin(), content.folders.end());
  std::sort(content.files.begin(), content.files.end());
  return content;
}

}  // namespace

std::string explain_nothing(const std::string &root, const DiscoveryOptions &options) {
  if (is_uri(root))
    return "\n  Files are looked for one level below, in the folders of the classes, and must match file_filters and "
           "dir_filters. The path must end with the whole name of a folder; a bucket of S3 needs one";
  const auto passes = [&](const std::string &name, const std::vector<std::string> &filters) {
    return matches(name, filters, options.case_sensitive_filter);
  };
  Kind files_beside, other_folders, other_files, deeper_folders;
  const Content top = content_of(root);
  for (const std::string &file : top.files)
    if (passes(file, options.file_filters)) files_beside.add(file);
  for (const std::string &folder : top.folders) {
    if (!passes(folder, options.dir_filters)) {
      other_folders.add(folder);
      continue;
    }
    const Content below = content_of(root + "/" + folder);
    for (const std::string &file : below.files) other_files.add(folder + "/" + file);
    for (const std::string &deeper : below.folders) deeper_folders.add(folder + "/" + deeper);
  }
  std::string text;
  if (top.folders.empty() && top.files.empty()) text += "\n  It is empty";
  if (files_beside.count > 0)
    text += "\n  " + files_beside.text("file") +
            " in it would match, but files are looked for in its folders, one for each class: give its parent as "
            "file_root, or the files as files";
  if (other_folders.count > 0) text += "\n  " + other_folders.text("folder") + " in it matched no dir_filters";
  if (other_files.count > 0) text += "\n  " + other_files.text("file") + " one level below matched no file_filters";
  if (deeper_folders.count > 0)
    text += "\n  There " + std::string(deeper_folders.count == 1 ? "is " : "are ") + deeper_folders.text("folder") +
            " one level below, and folders in class folders are passed over: is file_root one level too high?";
  return text;
}

Discovery discover(std::vector<StoredObject> objects, const DiscoveryOptions &options) {
  const auto folder_of = [](const StoredObject &object) {
    return std::string_view(object.path).substr(0, object.path.find('/'));
  };
  // Neither those beside the folders nor deeper ones. What ends with a slash stands for an empty folder.
  std::erase_if(objects, [](const StoredObject &object) { return std::ranges::count(object.path, '/') != 1; });
  // By folder first: in the order of the keys, a-b/ comes before a/.
  std::ranges::sort(objects, {}, [&](const StoredObject &object) {
    return std::pair(folder_of(object), std::string_view(object.path));
  });
  Discovery found;
  int label = -1;
  std::string folder;
  for (StoredObject &object : objects) {
    const std::string own_folder(folder_of(object));
    if (!matches(own_folder, options.dir_filters, options.case_sensitive_filter)) continue;
    if (label < 0 || own_folder != folder) label++;
    folder = own_folder;
    const std::string name = object.path.substr(folder.size() + 1);
    if (name.empty() || !matches(name, options.file_filters, options.case_sensitive_filter)) continue;
    found.files.push_back(
        {.file = {.path = std::move(object.path), .size = object.size}, .label = label, .companions = {}});
  }
  return found;
}

Discovery discover(const std::string &root, const DiscoveryOptions &options) {
  Discovery found;
  int label = 0;
  for (const Item &folder : list(root)) {
    const std::string folder_path = root + "/" + folder.name;
    if (!is_folder(folder, folder_path)) continue;
    if (!matches(folder.name, options.dir_filters, options.case_sensitive_filter)) continue;
    const size_t before = found.files.size();
    for (const Item &item : list(folder_path)) {
      if (!matches(item.name, options.file_filters, options.case_sensitive_filter)) continue;
      if (is_file(item, folder_path + "/" + item.name, found))
        found.files.push_back(folder.name + "/", item.name, label);
    }
    if (found.files.size() == before)
      found.problems.push_back(folder_path + " holds no matching files, but has the label " + std::to_string(label));
    else if (folder.name[0] == '.')
      found.problems.push_back(folder_path + " is hidden, but counts as a class folder with the label " +
                               std::to_string(label));
    label++;
  }
  return found;
}

}  // namespace dali_l3::loader
