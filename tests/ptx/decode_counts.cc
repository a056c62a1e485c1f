// Decodes L3 files as one batch and prints, as JSON, what the kernels executed: benchmarks/gpu/counts.py.
//
//   decode_counts COLOR SAMPLE FILE.l3 ...
//
// COLOR and SAMPLE are numbers of l3_color and l3_sample. The pixels are compared with those of the decoder for the
// CPU.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "cuda/batch.h"
#include "cuda_objects.h"
#include "l3/l3_cuda.h"

using namespace ptx;

namespace {

[[noreturn]] void stop(const std::string &message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::exit(1);
}

struct Image {
  Image(const char *path, l3_color color, l3_sample sample) {
    std::ifstream stream(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(stream), {});
    l3_error error{};
    if (l3_open(bytes.data(), bytes.size(), &file, &error)) stop(std::string(path) + ": " + error.message);
    const l3_info &info = file.info;
    const size_t row = size_t{info.width} * l3_output_channels(&info, color) * l3_output_sample_size(&info, sample);
    expected.resize(row * info.height);
    output = {expected.data(), row, color, sample, 0};
    region = {0, 0, info.width, info.height};
    if (l3_decode(&file, &region, &output, 0, &error)) stop(std::string(path) + ": " + error.message);
    memory = std::make_unique<DeviceBuffer>(expected.size());
    output.data = memory->data();
  }

  std::vector<uint8_t> bytes, expected;
  l3_file file{};
  l3_output output{};
  l3_rect region{};
  std::unique_ptr<DeviceBuffer> memory;
};

// All kernels get the batch's layout, and where in its order of tiles those of the launch begin.
uint32_t tiles_of(const runtime::Launch &launch) {
  l3::BatchLayout layout;
  uint32_t first;
  std::memcpy(&layout, &launch.parameters[launch.kernel->parameters[1].offset], sizeof layout);
  std::memcpy(&first, &launch.parameters[launch.kernel->parameters[2].offset], sizeof first);
  for (uint32_t kind = 0; kind < l3::kTileKinds; kind++)
    if (layout.kind_begin[kind] == first && layout.kind_begin[kind + 1] > first)
      return layout.kind_begin[kind + 1] - first;
  stop("a launch of no kind of tiles");
}

// Launches of a kernel, taken together.
struct Launches {
  const Kernel *kernel;
  uint32_t threads;  // of a block
  uint64_t tiles = 0, blocks = 0;
};

std::vector<Launches> by_kernel() {
  std::vector<Launches> all;
  for (const runtime::Launch &launch : runtime::launches()) {
    const auto same = [&](const Launches &one) { return one.kernel == launch.kernel; };
    auto found = std::find_if(all.begin(), all.end(), same);
    if (found == all.end()) found = all.insert(found, {launch.kernel, launch.threads});
    found->tiles += tiles_of(launch);
    found->blocks += launch.blocks;
  }
  return all;
}

using Numbers = std::vector<std::pair<const char *, uint64_t>>;

std::string json(const Numbers &numbers) {
  std::string text;
  for (const auto &[name, number] : numbers)
    text += (text.empty() ? "{\"" : ", \"") + std::string(name) + "\": " + std::to_string(number);
  return text + '}';
}

std::string json(const Counts::Executed &executed) {
  return json(Numbers{{"warps", executed.warps}, {"lanes", executed.lanes}});
}

std::string json(const Counts::Global &global) {
  return json(Numbers{
      {"accesses", global.accesses}, {"bytes", global.bytes}, {"sectors", global.sectors}, {"lines", global.lines}});
}

std::string json(const Launches &launches) {
  static constexpr const char *kNames[kKinds] = {"move", "alu", "fma", "load_store", "shuffle", "control"};
  const Code &code = launches.kernel->code;
  const Counts counts = runtime::counts(*launches.kernel);
  const auto kinds = counts.by_kind(code);
  std::string text =
      "{\"kernel\": \"" + launches.kernel->name + "\", \"launched\": " +
      json(Numbers{{"tiles", launches.tiles}, {"blocks", launches.blocks}, {"threads", launches.threads}});
  text += ",\n \"ptx\": {";
  for (uint32_t kind = 0; kind < kKinds; kind++)
    text += (kind ? ", \"" : "\"") + std::string(kNames[kind]) + "\": " + json(kinds[kind]);
  text += "},\n \"branches\": " + json(Numbers{{"executed", counts.branches.executed},
                                               {"taken", counts.branches.taken},
                                               {"divergent", counts.branches.divergent}});
  text += ",\n \"read\": " + json(counts.read) + ",\n \"written\": " + json(counts.written);
  text += ",\n \"shared\": " + json(Numbers{{"accesses", counts.shared.accesses},
                                            {"wavefronts", counts.shared.wavefronts},
                                            {"conflicts", counts.shared.conflicts}});
  text += ",\n \"basic_blocks\": [";
  for (size_t i = 0; i < counts.blocks.size(); i++) {
    text += (i ? ",\n  " : "") + json(counts.blocks[i]);
    text.pop_back();
    text += ", \"lines\": [";  // of the PTX
    for (uint32_t at = code.blocks[i].begin; at < code.blocks[i].end; at++)
      text += (at > code.blocks[i].begin ? ", " : "") + std::to_string(code.instructions[at].line);
    text += "]}";
  }
  return text + "]}";
}

}  // namespace

int main(int count, char **arguments) {
  if (count < 4) stop("decode_counts COLOR SAMPLE FILE.l3 ...");
  runtime::reset({"sm_90", runtime::Streams::kAtOnce, {Order::kFirst, 1, false}});
  const Stream stream;
  std::vector<Image> images;
  for (int i = 3; i < count; i++)
    images.emplace_back(arguments[i], l3_color(std::atoi(arguments[1])), l3_sample(std::atoi(arguments[2])));
  std::vector<l3_cuda_image> batch;
  for (const Image &image : images) batch.push_back({image.file, image.region, image.output});

  l3_error error{};
  l3_cuda_decoder *decoder = nullptr;
  if (l3_cuda_create(&decoder, &error)) stop(error.message);
  size_t failed = 0;
  if (l3_cuda_decode(decoder, batch.data(), batch.size(), nullptr, stream, &failed, &error)) stop(error.message);
  for (const Image &image : images) {
    std::vector<uint8_t> actual(image.expected.size());
    image.memory->copy_to(actual.data(), stream);
    if (actual != image.expected) stop("the kernels decode something else than the decoder for the CPU");
  }
  l3_cuda_destroy(decoder);

  const char *separator = "[";
  for (const Launches &launches : by_kernel()) {
    std::printf("%s%s", separator, json(launches).c_str());
    separator = ",\n";
  }
  std::printf("]\n");
}
