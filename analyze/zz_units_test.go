package analyze
import ("testing";"path/filepath";"fmt";"os";"context";"strings";"time"
"github.com/nsys-llm/explain/analyze/internal/trace")
func TestZZUnits(t *testing.T){
 files,_:=filepath.Glob("../../shared/traces/*.sqlite")
 if g:=os.Getenv("G"); g!="" { files=nil; m,_:=filepath.Glob(g); files=m }
 for _,f:=range files {
  opt:=Options{Unit:os.Getenv("UNIT")}
  tags,err:=newTagger(&opt); if err!=nil {t.Fatal(err)}
  tr,err:=trace.Open(context.Background(),f,trace.Options{Tag:tags.tag}); if err!=nil {fmt.Println(f,err);continue}
  t0:=time.Now()
  in,err:=prepare(tr,&opt,tags); if err!=nil {t.Fatal(err)}
  d:=time.Since(t0)
  r:=in.Units
  fmt.Println("==",filepath.Base(f),tr.Kernels.Len(),r.Kind,"|",strings.ReplaceAll(r.Name,"\n"," ")[:min(len(r.Name),90)],"|",r.Why, d)
  fmt.Printf("   period %+v\n",r.Period)
  c,w,o:=r.Trimmed(); fmt.Println("   units",len(r.Units),"cut",c,"warm",w,"other",o,"primary",r.Primary)
  for i,g:=range r.Groups {
   if i>12 {break}
   fmt.Printf("   %+v\n",g)
   for _,dev:=range r.Devices(i) {
     var sum,n int64; var s []string
     for k:=range r.Units { u:=&r.Units[k]; if u.Group==int32(i)&&u.Device==dev { if u.State==0 {sum+=u.Time();n++}; if len(s)<20 {s=append(s,fmt.Sprintf("%.3f%s",float64(u.Time())/1e6,u.State.String()[:1]))} } }
     fmt.Println("     dev",dev,"n",n,"mean ms",float64(sum)/float64(n)/1e6,s)
   }
  }
  tr.Close()
 }
}
