/* vktrain/models.h - well-known networks made of the layers of nn.h, with the names of their published weights. */
#ifndef VKTRAIN_MODELS_H
#define VKTRAIN_MODELS_H

#include "vktrain/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The options of a residual network (He, Zhang, Ren & Sun, Deep Residual Learning for Image Recognition, CVPR 2016). */
typedef struct vkt_resnet_params {
    uint32_t depth;   /* 18, 34, 50, 101 or 152; in the CIFAR form 6 n + 2 with n > 0, for instance 20, 32, 44 or 56 */
    bool cifar;       /* the form for images of 32x32 */
    uint32_t classes; /* 0 means 1000, or 10 in the CIFAR form */
    /* Batch norms use their running statistics in training too, and do not change them. Set this member if you freeze
     * batch norms with vkt_freeze, for instance by the patterns "conv1.*", "bn1.*" and "layer*". Freezing does not set
     * this member, and this member freezes no parameter. */
    bool use_running;
} vkt_resnet_params;
/* Builds a residual network: x (B,C,H,W) -> logits (B,classes). H and W may be any sizes.
 *
 * Layers and names are torchvision's: conv1 (7x7, stride 2), bn1, max pool 3x3, layer1 to layer4 (with blocks layer1.0,
 * layer1.1, ..), mean over the pixels, fc. So torchvision's weights, saved as safetensors, can be loaded. For depths 18
 * and 34, a block is conv1, bn1, conv2, bn2 (both convolutions 3x3). For larger depths, a block is conv1, bn1, conv2,
 * bn2, conv3, bn3 (conv1 is 1x1, conv2 is 3x3 with the stride, conv3 is 1x1 with four times the channels). If the shape
 * changes, the shortcut is downsample.0 (a 1x1 convolution) and downsample.1 (a norm).
 *
 * The CIFAR form (section 4.2 of the paper): conv1 (3x3), bn1, layer1 to layer3, mean over the pixels, linear. layer1,
 * layer2 and layer3 have n blocks each, where the depth is 6 n + 2. The blocks are those of depth 18, with 16, 32 and
 * 64 channels. If the shape changes, the shortcut has no weights ("option A"): it reads every second row and column,
 * and adds equal numbers of zero channels before and after the channels of x.
 *
 * Convolutions have no bias. Their initial weights are normal, with mean 0 and variance 2 / fan_out. Norms start with
 * weights of 1 and biases of 0 (torchvision). The last layer starts like a vkt_nn_linear of the builder's preset.
 * VKT_E_ARG for a depth that is not listed at vkt_resnet_params.depth. */
VKT_API vkt_tensor vkt_resnet(vkt_builder *b, vkt_tensor x, const vkt_resnet_params *p);

/* The options of a language model of GPT-2's form (Radford et al., Language Models are Unsupervised Multitask Learners,
 * 2019). */
typedef struct vkt_gpt_params {
    uint32_t vocabulary;   /* V */
    uint32_t context;      /* the largest number of tokens that a sample may have */
    uint32_t layers;       /* number of transformer blocks */
    uint32_t heads;        /* attention heads; divides width */
    uint32_t width;        /* D */
    float dropout;         /* dropout in training: of the embeddings, the attention weights, and the outputs of attn and
                            * mlp (see vkt_gpt) */
    bool recompute_blocks; /* keep only the input of each block, and compute the block again for its gradients: see
                            * vkt_recompute_begin */
} vkt_gpt_params;
/* Builds the model: ids (B,T) u32, T at most `context` -> logits (B,T,V) of the next token at each position, ROWS.
 * VKT_E_ARG: vocabulary, context, layers, heads or width is 0; or b builds a training graph, and dropout is not in
 * [0,1]. VKT_E_SHAPE: ids are not (B,T) with T up to `context`, or `heads` does not divide `width`.
 *
 * Names are minGPT's and nanoGPT's:
 *   transformer.wte (V,D) and transformer.wpe (context,D), added
 *   transformer.h.<i>: x += attn(ln_1(x)), x += mlp(ln_2(x)); attn is causal vkt_nn_multi_head_attention, mlp is c_fc
 *     (4D), GELU (the exact one), c_proj
 *   transformer.ln_f
 *   lm_head, without bias, with a matrix of its own (like minGPT; GPT-2 uses the matrix of wte)
 * Initial weights are normal, with mean 0. Their standard deviation is 0.02 / sqrt(2 * layers) in the c_proj of attn
 * and of mlp, else 0.02. Biases start as 0, and norms with weights of 1. Biases and the weights of norms ("*.bias",
 * "*.ln_*.weight") are usually trained without weight decay: see vkt_set_group. */
VKT_API vkt_tensor vkt_gpt(vkt_builder *b, vkt_tensor ids, const vkt_gpt_params *p);

#ifdef __cplusplus
}
#endif
#endif
