// What the fused optimizer kernels do: an operand for each array of each entry.
#include "tern/kernels/work_describe.h"

namespace tern::kernels {
namespace {

/// The parameters, their gradients, and the states in use.
struct Uses {
  bool state[3];
  bool keeps_fresh;  ///< a fresh entry's first state holds nothing yet and is only written
};

void add_step(Work& work, const OptimList& list, double flops_per_element, const Uses& uses) {
  const size_t item = itemsize(list.dtype);
  work.flops = flops_per_element * static_cast<double>(list.numel);
  for (int32_t i = 0; i < list.count; ++i) {
    const OptimEntry& entry = list.entries[i];
    updates(work, entry.param, item, entry.numel);
    reads(work, entry.grad, item, entry.numel);
    for (int s = 0; s < 3; ++s) {
      if (!uses.state[s]) continue;
      const bool only_written = s == 0 && entry.fresh && uses.keeps_fresh;
      add_operand(work, only_written ? Access::Write : Access::ReadWrite, entry.state[s], item,
                  Span(entry.numel));
    }
  }
}

void add_params(Work& work, const OptimList& list) {
  for (int32_t i = 0; i < list.count; ++i)
    updates(work, list.entries[i].param, itemsize(list.dtype), list.entries[i].numel);
}

double decay_flops(double weight_decay) { return weight_decay != 0 ? 2 : 0; }

}  // namespace

void describe(const SgdStepArgs& args, Work& work) {
  const bool momentum = args.momentum != 0;
  const double flops = 2 + decay_flops(args.weight_decay) + (momentum ? 3 : 0);
  add_step(work, args.list, flops, {.state = {momentum, false, false}, .keeps_fresh = true});
}

void describe(const AdamStepArgs& args, Work& work) {
  work.op = args.decoupled ? "adamw_step" : "adam_step";
  const double flops = 13 + decay_flops(args.weight_decay) + (args.amsgrad ? 1 : 0);
  add_step(work, args.list, flops, {.state = {true, true, args.amsgrad}, .keeps_fresh = false});
}

void describe(const RmspropStepArgs& args, Work& work) {
  const bool momentum = args.momentum != 0;
  const double flops = 9 + decay_flops(args.weight_decay) + (momentum ? 3 : 0) + (args.centered ? 5 : 0);
  add_step(work, args.list, flops, {.state = {true, momentum, args.centered}, .keeps_fresh = false});
}

void describe(const AdagradStepArgs& args, Work& work) {
  add_step(work, args.list, 7 + decay_flops(args.weight_decay),
           {.state = {true, false, false}, .keeps_fresh = false});
}

void describe(const NadamStepArgs& args, Work& work) {
  add_step(work, args.list, 15 + decay_flops(args.weight_decay),
           {.state = {true, true, false}, .keeps_fresh = false});
}

void describe(const RadamStepArgs& args, Work& work) {
  add_step(work, args.list, 13 + decay_flops(args.weight_decay),
           {.state = {true, true, false}, .keeps_fresh = false});
}

void describe(const AdamaxStepArgs& args, Work& work) {
  add_step(work, args.list, 10 + decay_flops(args.weight_decay),
           {.state = {true, true, false}, .keeps_fresh = false});
}

void describe(const AdadeltaStepArgs& args, Work& work) {
  add_step(work, args.list, 16 + decay_flops(args.weight_decay),
           {.state = {true, true, false}, .keeps_fresh = false});
}

void describe(const AsgdStepArgs& args, Work& work) {
  add_step(work, args.list, 6 + decay_flops(args.weight_decay),
           {.state = {true, false, false}, .keeps_fresh = false});
}

void describe(const RpropStepArgs& args, Work& work) {
  add_step(work, args.list, 6, {.state = {true, true, false}, .keeps_fresh = false});
}

void describe(const OptimNormArgs& args, Work& work) {
  work.op = "clip_grad_norm_";
  work.flops = 2 * static_cast<double>(args.list.numel);
  writes(work, args.out, compute_size(args.list.dtype), 1);
  for (int32_t i = 0; i < args.list.count; ++i)
    reads(work, args.list.entries[i].grad, itemsize(args.list.dtype), args.list.entries[i].numel);
}

void describe(const OptimClipNormArgs& args, Work& work) {
  work.op = "clip_grad_norm_";
  work.flops = static_cast<double>(args.list.numel);
  reads(work, args.norm, itemsize(args.norm_dtype), 1);
  add_params(work, args.list);
}

void describe(const OptimClipValueArgs& args, Work& work) {
  work.op = "clip_grad_value_";
  work.flops = static_cast<double>(args.list.numel);
  add_params(work, args.list);
}

void describe(const OptimUnscaleArgs& args, Work& work) {
  work.op = "unscale_";
  work.flops = 2 * static_cast<double>(args.list.numel);
  writes(work, args.found_inf, sizeof(float), 1);
  add_params(work, args.list);
}

}  // namespace tern::kernels
