/* vktrain/vktrain.h - the library's public API, except vulkan.h and mpi.h. This header includes no Vulkan header. */
#ifndef VKTRAIN_VKTRAIN_H
#define VKTRAIN_VKTRAIN_H

#include "vktrain/audit.h"      /* checks of a device's results */
#include "vktrain/card.h"       /* description of training data */
#include "vktrain/columns.h"    /* columns of a table as numbers */
#include "vktrain/core.h"       /* results, logger, devices, memory */
#include "vktrain/custom.h"     /* ops of the application */
#include "vktrain/data.h"       /* data sets */
#include "vktrain/dist.h"       /* data parallel training */
#include "vktrain/events.h"     /* files for TensorBoard */
#include "vktrain/generate.h"   /* text by a language model */
#include "vktrain/gguf.h"       /* GGUF files */
#include "vktrain/gguf_model.h" /* language models in GGUF files */
#include "vktrain/graph.h"      /* tensors, programs */
#include "vktrain/lm.h"         /* language models on a device */
#include "vktrain/metrics.h"    /* confusion, precision, recall, top-k */
#include "vktrain/models.h"     /* networks */
#include "vktrain/nn.h"         /* layers */
#include "vktrain/ops.h"        /* ops */
#include "vktrain/optim.h"      /* optimizers */
#include "vktrain/peft.h"       /* files of LoRA adapters */
#include "vktrain/table.h"      /* tables of numbers */
#include "vktrain/text.h"       /* texts, vocabularies */
#include "vktrain/run_dir.h"    /* a folder for all files of a run */
#include "vktrain/schedule.h"   /* learning rates */
#include "vktrain/tokenizer.h"  /* tokenizers of language models */
#include "vktrain/train.h"      /* fit, evaluate, predict */

#endif
