package report

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"

	"github.com/assay-gpu/assay/golden"
)

// PNG draws the same map of the SMs as SVG, for what shows no SVG: the cells with the SMs' numbers, without words. Both images of
// a result have the same size and places.
func PNG(r golden.Result) ([]byte, error) {
	states := SMs(r)
	w, h := size(len(states))
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	fill(img, img.Bounds(), color.White)
	for _, s := range states {
		x, y := place(s.SM)
		red, green, blue := s.rgb()
		fill(img, image.Rect(x, y, x+side, y+side), color.RGBA{red, green, blue, 255})
		if s.Partition >= 0 && s.Partition < golden.Partitions {
			px, py := x+s.Partition%2*side/2, y+s.Partition/2*side/2
			fill(img, image.Rect(px, py, px+side/2, py+side/2), color.Black)
		}
		number(img, x+side/2, y+side/2, s.SM)
	}
	var b bytes.Buffer
	err := png.Encode(&b, img)
	return b.Bytes(), err
}

func fill(img draw.Image, r image.Rectangle, c color.Color) {
	draw.Draw(img, r, image.NewUniform(c), image.Point{}, draw.Src)
}

// digits are three dots wide and five high, a row in three bits.
var digits = [10][5]byte{
	{7, 5, 5, 5, 7}, {2, 6, 2, 2, 7}, {7, 1, 7, 4, 7}, {7, 1, 7, 1, 7}, {5, 5, 7, 1, 1},
	{7, 4, 7, 1, 7}, {7, 4, 7, 5, 7}, {7, 1, 1, 1, 1}, {7, 5, 7, 5, 7}, {7, 5, 7, 1, 7},
}

const dot = 2 // pixels

// number draws n around a point: white, on a dark plate so that it can be read on every colour.
func number(img draw.Image, x, y, n int) {
	var ds []int
	for ; n > 9; n /= 10 {
		ds = append([]int{n % 10}, ds...)
	}
	ds = append([]int{n}, ds...)
	w, h := (4*len(ds)-1)*dot, 5*dot
	left, top := x-w/2, y-h/2
	fill(img, image.Rect(left-dot, top-dot, left+w+dot, top+h+dot), color.RGBA{0x22, 0x22, 0x22, 255})
	for i, d := range ds {
		for row, bits := range digits[d] {
			for col := range 3 {
				if bits>>(2-col)&1 == 1 {
					px, py := left+(4*i+col)*dot, top+row*dot
					fill(img, image.Rect(px, py, px+dot, py+dot), color.White)
				}
			}
		}
	}
}
