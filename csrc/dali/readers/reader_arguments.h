// What the arguments of both readers ask for, as the engine takes it.
#pragma once

#include "dali/pipeline/operator/op_spec.h"
#include "loader/arguments/reading.h"
#include "loader/arguments/sampling.h"
#include "loader/dataset/catalogue.h"

namespace dali_l3 {

// What a reader delivers beside the image. With a catalogue, its file says this.
struct ReaderOutputs {
  int companions;
  bool has_labels;    // not, if nobody has said what they are in archives
  int label_columns;  // numbers of a label; 0: labels are integers

  explicit ReaderOutputs(const dali::OpSpec &spec);
};

// The outputs that a reader has: the image, its companions and, if there are any, the label.
int Outputs(const dali::OpSpec &spec);

// Which samples form an epoch, and how often they come.
loader::ShardOptions ShardArguments(const dali::OpSpec &spec);
loader::WeightingArguments WeightingArguments(const dali::OpSpec &spec);

// How files are read.
loader::ReadingArguments ReadingArguments(const dali::OpSpec &spec, int companions, int batch_size);

// Adds to the options where the samples are, and which part of them is to be read.
void AddListingArguments(const dali::OpSpec &spec, const ReaderOutputs &outputs, loader::CatalogueOptions &options);

}  // namespace dali_l3
