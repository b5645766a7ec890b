/* vktrain/models.h - well-known networks made of the layers of nn.h, with the names of their published weights. */
#ifndef VKTRAIN_MODELS_H
#define VKTRAIN_MODELS_H

#include "vktrain/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Residual networks (He, Zhang, Ren & Sun, Deep Residual Learning for Image Recognition, CVPR 2016). */
typedef struct vkt_resnet_params {
    uint32_t depth;   /* 18, 34, 50, 101 or 152; of the CIFAR form 6 n + 2: 20, 32, 44, 56, 110 */
    bool cifar;       /* the form for pictures of 32x32 */
    uint32_t classes; /* 0: 1000; of the CIFAR form 10 */
    /* Batch norms in evaluation mode, in training too: they normalise with their running statistics and leave those as
     * they are. What is frozen (vkt_freeze: "conv1.*", "bn1.*", "layer*") usually wants this as well; one does not
     * imply the other. */
    bool use_running;
} vkt_resnet_params;
/* x (B,C,H,W) -> logits (B,classes), of any size that leaves a pixel at the end.
 *
 * Layers and names are torchvision's: conv1 (7x7, stride 2), bn1, max pool 3x3, layer1.0 .. layer4.<n>, mean over the
 * pixels, fc. A block is conv1, bn1, conv2, bn2 (3x3 both; depth 18 and 34), or conv1, bn1, conv2, bn2, conv3, bn3
 * (1x1, 3x3, which has the stride, and 1x1 with four times the channels); where the shape changes, the shortcut is
 * downsample.0, a 1x1 convolution, and downsample.1, its norm. So torchvision's weights, saved as safetensors, load.
 *
 * The CIFAR form (section 4.2 of the paper): conv1 (3x3), bn1, layer1 to layer3 of n basic blocks with 16, 32 and 64
 * channels, mean over the pixels, linear. Where the shape changes, the shortcut has no weights ("option A"): every
 * second row and column, and as many channels of zeros before as after the old ones.
 *
 * Convolutions have no bias and begin as N(0, 2 / fan_out), norms as 1 and 0 (torchvision), the last layer as torch's
 * Linear. VKT_E_ARG for another depth. */
VKT_API vkt_tensor vkt_resnet(vkt_builder *b, vkt_tensor x, const vkt_resnet_params *p);

/* A language model of GPT-2's form (Radford et al., Language Models are Unsupervised Multitask Learners, 2019). */
typedef struct vkt_gpt_params {
    uint32_t vocabulary; /* V */
    uint32_t context;    /* the most tokens that it sees */
    uint32_t layers;     /* blocks */
    uint32_t heads;      /* of attention: they divide width */
    uint32_t width;      /* D */
    float dropout;       /* of embeddings, attention weights and what is added in a block, in training */
} vkt_gpt_params;
/* ids (B,T) u32, T at most `context` -> logits (B,T,V) of the token after each, ROWS. VKT_E_SHAPE.
 *
 * Names are minGPT's and nanoGPT's: transformer.wte (V,D) and transformer.wpe (context,D), added; blocks
 * transformer.h.<i>, x += attn(ln_1(x)), x += mlp(ln_2(x)), where attn is causal vkt_nn_multi_head_attention and mlp is
 * c_fc (4D), GELU (the exact one), c_proj; transformer.ln_f; lm_head, without bias and a matrix of its own (minGPT;
 * GPT-2 takes wte there). Weights begin as N(0, 0.02), those of both c_proj as N(0, 0.02 / sqrt(2 layers)), biases as
 * 0. Biases and norms ("*.bias", "*.ln_*.weight") are not decayed as a rule: vkt_set_group. */
VKT_API vkt_tensor vkt_gpt(vkt_builder *b, vkt_tensor ids, const vkt_gpt_params *p);

#ifdef __cplusplus
}
#endif
#endif
