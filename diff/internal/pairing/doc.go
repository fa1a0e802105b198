// Package pairing finds what two sides have in common: whether they can be compared at all, which kind of unit both
// have, how much of the work is the same, and which kernel of the head corresponds to which of the base. It does not
// measure changes.
//
// Kernels are paired by name, then by canonical name, then by family, then by their place in the unit. With a base of
//
//	norm  gemm_128x64  flash_v2  gemm_128x64  silu
//
// and a head of
//
//	norm  gemm_64x64   flash_v3  gemm_64x64   silu
//
// norm and silu pair exactly, the gemms by family (library, operation and type are the same), and flash_v2 with
// flash_v3 by position: both are of the category attention, between the same neighbours, and run once.
package pairing
